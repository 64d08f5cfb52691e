"""A headless Chromium that is controlled over two pipes."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time

# Time limit in seconds for an answer of the browser.
ANSWER = 120


class Browser:
    """A browser that is controlled over two pipes; each message ends with a zero byte."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(prefix="lockstep-browser.")
        to_us, to_it = os.pipe(), os.pipe()
        # The browser reads from descriptor 3 and writes to descriptor 4.
        script = f'exec 3<&{to_it[0]} 4>&{to_us[1]}; exec "$@"'
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--hide-scrollbars",
                     "--no-first-run", f"--user-data-dir={self.profile.name}", "about:blank"]
        self.process = subprocess.Popen(["bash", "-c", script, "browser", program, *arguments], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        pass_fds=[to_it[0], to_us[1]])
        os.close(to_it[0])
        os.close(to_us[1])
        self.reader, self.writer = os.fdopen(to_us[0], "rb", 0), os.fdopen(to_it[1], "wb", 0)
        self.number, self.rest, self.events = 0, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def receive(self, until):
        while b"\0" not in self.rest:
            if not select.select([self.reader], [], [], max(0, until - time.monotonic()))[0]:
                sys.exit(f"page-check: the browser did not answer for {ANSWER} seconds")
            more = self.reader.read(1 << 20)
            if not more:
                sys.exit("page-check: the browser went away")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        until = time.monotonic() + ANSWER
        while True:
            answer = self.receive(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"page-check: {method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        until = time.monotonic() + ANSWER
        while True:
            for event in self.events:
                if event.get("method") == method:
                    return
            self.events.append(self.receive(until))

    def evaluate(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def close(self):
        self.process.kill()
        self.process.wait()
        try:
            self.profile.cleanup()
        except OSError:
            pass
