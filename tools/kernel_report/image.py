"""A cubin (ELF): the constant banks of each entry point and the variables in global memory."""

import struct

GLOBALS = 0xF << 36  # where machine.py puts the module's variables
R_CUDA_64 = 2


class Image:
    """banks(name) gives {number: bytes}; `variables` has the bytes at GLOBALS."""

    def __init__(self, data):
        if data[:4] != b"\x7fELF":
            raise ValueError("not a cubin")
        offset, = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * i) for i in range(count)]
        strings = headers[names]
        self.sections, self.kinds = {}, {}
        for name, kind, _, _, start, length, link, info, _, _ in headers:
            end = data.index(b"\0", strings[4] + name)
            title = data[strings[4] + name : end].decode()
            self.sections[title] = bytes(length) if kind == 8 else data[start : start + length]
        self.variables = self.variable_memory(headers, data)
        self.relocate()

    def variable_memory(self, headers, data):
        self.init = self.sections.get(".nv.global.init", b"")
        bare = self.sections.get(".nv.global", b"")
        gap = -len(self.init) % 256
        self.bare_at = len(self.init) + gap
        return bytearray(self.init + bytes(gap) + bare)

    def relocate(self):
        """Addresses of variables in constant bank 4."""
        symbols = self.sections.get(".symtab", b"")
        titles = list(self.sections)
        for title in titles:
            if not title.startswith(".rela.nv.constant"):
                continue
            bank = bytearray(self.sections[title[5:]])
            for at, info, addend in struct.iter_unpack("<QQq", self.sections[title]):
                if info & 0xFFFFFFFF != R_CUDA_64:
                    raise ValueError(f"a relocation of unknown kind in {title}")
                _, _, _, section, value, _ = struct.unpack_from("<IBBHQQ", symbols, 24 * (info >> 32))
                in_init = self.title_of(section) == ".nv.global.init"
                struct.pack_into("<Q", bank, at, GLOBALS + value + addend + (0 if in_init else self.bare_at))
            self.sections[title[5:]] = bytes(bank)

    def title_of(self, index):
        return list(self.sections)[index]

    def banks(self, name):
        found = {}
        for number in range(18):
            for title in (f".nv.constant{number}.{name}", f".nv.constant{number}"):
                if title in self.sections:
                    bank = bytes(self.sections[title])
                    found[number] = bank + bytes(-len(bank) % 4)
                    break
        return found

    def static_shared(self, name):
        return len(self.sections.get(f".nv.shared.{name}", b""))

    def parameters(self, name):
        """Where the parameters begin in bank 0, and their size."""
        info = self.sections[f".nv.info.{name}"]
        at = 0
        while at < len(info):
            form, attribute, value = struct.unpack_from("<BBH", info, at)
            at += 4
            if form == 4:
                if attribute == 0x0A:  # EIATTR_PARAM_CBANK
                    return struct.unpack_from("<HH", info, at + 4)
                at += value
        raise ValueError(f"{name}: no parameters")
