"""Tests of the check of the architecture: it must find a new circle and a dependency against the layers."""

import pathlib
import tempfile
import unittest

import crates
import known
import modules
import picture


def metadata(*packages):
    """Returns the text that cargo prints for these packages. Each package is given by its folder and its dependencies, which are
    pairs of a folder and a kind."""
    name = lambda folder: "lockstep-" + folder.replace("/", "-")
    return {
        "packages": [
            {
                "name": name(folder),
                "manifest_path": f"/root/{folder}/Cargo.toml",
                "dependencies": [
                    {"name": name(used), "kind": kind, "optional": True} for used, kind in dependencies
                ],
            }
            for folder, dependencies in packages
        ]
    }


def workspace(*packages):
    return crates.from_metadata(metadata(*packages), pathlib.Path("/root"))


class Layers(unittest.TestCase):
    def wrong(self, user, used, kind=None):
        return crates.wrong_dependencies(workspace((user, [(used, kind)]), (used, [])))

    def test_the_rules(self):
        layers = list(crates.RULES)
        allowed = {
            (user, used) for user in layers for used in layers if not self.wrong(f"{user}/a", f"{used}/b")
        }
        below = ["engine", "devices", "library", "interfaces"]
        wanted = {(user, used) for number, user in enumerate(below) for used in below[: number + 1]}
        wanted |= {("lab", used) for used in layers if used != "dev"} | {("dev", used) for used in layers}
        self.assertEqual(allowed, wanted)

    def test_only_dependencies_of_tests_are_not_restricted(self):
        self.assertEqual(list(self.wrong("library/a", "lab/b", "build")), [("a", "b")])
        self.assertEqual(self.wrong("engine/a", "dev/b", "dev"), {})

    def test_a_folder_can_have_the_name_of_one_on_a_lower_layer(self):
        found = workspace(("lab/provider", [("interfaces/provider", None)]), ("interfaces/provider", []))
        self.assertEqual({name: set(crate.uses) for name, crate in found.items()}, {"provider": set(), "lab/provider": {"provider"}})
        self.assertIn("    lab_provider --> provider\n", picture.diagram(found))

    def test_a_folder_without_a_rule_is_a_fault(self):
        self.assertEqual(list(crates.wrong_dependencies(workspace(("attic/a", [])))), [("a", "a")])


class Modules(unittest.TestCase):
    def imports(self, **files):
        """The imports of a crate with these sources; `__` in a name stands for a folder."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, "src", *name.split("__")).with_suffix(".rs")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return modules.imports(pathlib.Path(folder))

    def circles(self, **files):
        return modules.circles(self.imports(**files))

    def test_a_circle_is_found(self):
        ways = ["use crate::a::A;", "use super::{b::B, a};", "fn f() { crate::a::f() }", "use crate::{std::{x, y}, a as c};"]
        for way in ways:
            found = self.circles(lib="mod a;\nmod b;", a="use crate::b::B;", b=way)
            self.assertEqual(found, {frozenset("ab")}, way)

    def test_a_longer_circle_and_one_through_the_root_are_found(self):
        found = self.circles(lib="mod a; mod b; mod c; pub use a::Name;", a="use super::b;", b="use super::c;", c="use crate::Name;")
        self.assertEqual(found, {frozenset("abc")})

    def test_submodules_belong_to_their_module(self):
        sources = {"lib": "mod a; mod b;", "a__mod": "mod x; mod y;", "a__x": "use super::y; use super::super::b;", "a__y": "use super::x;"}
        self.assertEqual(self.circles(**sources, b=""), set())
        self.assertEqual(self.circles(**sources, b="use crate::a::x;"), {frozenset("ab")})

    def test_tests_comments_and_literals_do_not_count(self):
        text = """
            // use crate::a;
            /* use crate::a; */
            const TEXT: &str = "use crate::a; {";
            const LETTER: char = '{';
            #[cfg(test)]
            use crate::a::A;
            #[cfg(test)]
            #[path = "x.rs"]
            mod tests { use crate::a; fn f() { if true {} } }
        """
        edges = self.imports(lib="mod a; mod b; mod c;", a="use crate::b;", b=text + "use crate::c;", c="")
        self.assertEqual(edges, {"a": {"b"}, "b": {"c"}, "c": set()})

    def test_lifetimes_are_no_literals(self):
        self.assertIn("use crate::a;", modules.code("fn f<'a>(x: &'a str) {} use crate::a; fn g<'b>() {}"))


class List(unittest.TestCase):
    text = "# title\ncircle c: a b d  # why\ndependency x -> y\n"

    def compare(self, circles, wrong):
        return known.compare(known.parse(self.text), circles, wrong)

    def test_what_is_listed_is_no_fault_and_everything_else_is(self):
        circle, wrong = ("c", frozenset("abd")), {("x", "y"): "reason"}
        self.assertEqual(self.compare({circle}, wrong), ([], []))
        faults, stale = self.compare({circle, ("c", frozenset("ef")), ("d", frozenset("ab"))}, {**wrong, ("x", "z"): "new"})
        self.assertEqual((len(faults), stale), (3, []))
        # A listed circle that has grown counts as a new circle.
        faults, stale = self.compare({("c", frozenset("abde"))}, wrong)
        self.assertEqual((len(faults), len(stale)), (1, 1))

    def test_what_is_no_longer_true_must_go(self):
        self.assertEqual(self.compare({("c", frozenset("ab"))}, {}), ([], ["circle c: a b d", "dependency x -> y"]))

    def test_the_list_only_shrinks(self):
        found = {("c", frozenset("ab")), ("other", frozenset("ab"))}
        shrunk = known.shrunk(self.text, found, {("p", "q"): "new"})
        self.assertEqual(shrunk, "# title\ncircle c: a b  # why\n")
        self.assertEqual(known.shrunk(self.text, set(), {}), "# title\n")

    def test_a_line_that_is_not_understood_is_an_error(self):
        with self.assertRaises(ValueError):
            known.parse("circles c: a b")


class Picture(unittest.TestCase):
    def test_boxes_stand_in_layers_and_implied_arrows_are_left_out(self):
        found = workspace(("engine/a", []), ("devices/b-c", [("engine/a", None)]), ("library/d", [("engine/a", None), ("devices/b-c", None)]))
        page = picture.replaced(f"x\n{picture.BEGIN}\nold\n{picture.END}\ny\n", found)
        self.assertTrue(page.startswith("x\n") and page.endswith("\ny\n") and "old" not in page)
        self.assertIn("subgraph devices_layer[devices]\n        b_c[b-c]\n    end", page)
        self.assertIn("    d --> b_c\n", page)
        self.assertEqual(page.count("-->"), 2 + page.count("<!--"))
        with self.assertRaises(ValueError):
            picture.replaced("a page without markers", found)


if __name__ == "__main__":
    unittest.main()
