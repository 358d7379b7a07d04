"""Each rule of the lint is shown a planted fault and must see it, and nothing else."""

import importlib.util
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
SPEC = importlib.util.spec_from_file_location("tidy_main", HERE / "__main__.py")
TIDY = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TIDY)

TABLE = """# Architecture

| folder | may include |
|---|---|
| core/model | |
| core/rules | core/model |
| core | |
| journal, ledger | core |
| api | core, journal |
| api/client | core |
| cli | api/client |
| daemon | everything |
"""
HEADER = "#pragma once\n"
HOME = "/" + "home/someone"


class TidyTest(unittest.TestCase):
    def findings(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {"docs/architecture.md": TABLE, **files}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            return TIDY.run(root)

    def assert_rules(self, files, *expected):
        found = self.findings(files)
        self.assertEqual(sorted(f.rule for f in found), sorted(expected),
                         "\n".join(map(str, found)))

    def test_a_clean_tree_has_no_findings(self):
        self.assert_rules({
            "src/core/model/units.h": HEADER + "struct Units {};\n",
            "src/core/rules/order.h": HEADER + '#include "core/model/units.h"\n',
            "src/core/rules/order.cpp": '#include "core/rules/order.h"\n#include <vector>\n',
            "src/core/rules/order_test.cpp": '#include "core/rules/order.h"\n',
            "src/cli/ps.h": HEADER + '#include "api/client.h"\n',
        })

    def test_include_directions(self):
        for path, target in (
                ("core/model/a.h", "core/rules/b.h"), ("core/rules/a.h", "core/engine.h"),
                ("core/engine.h", "journal/log.h"), ("ledger/a.h", "journal/log.h"),
                ("cli/ps.h", "api/server.h"), ("api/client.h", "api/server.h")):
            with self.subTest(path):
                self.assert_rules({f"src/{path}": HEADER + f'#include "{target}"\n'},
                                  "include-direction")

    def test_everything_is_allowed_where_the_table_says_so(self):
        self.assert_rules({"src/daemon/a.h": HEADER + '#include "journal/log.h"\n'})

    def test_a_folder_without_a_row(self):
        self.assert_rules({"src/strange/a.h": HEADER}, "include-direction")

    def test_a_missing_table(self):
        self.assert_rules({"docs/architecture.md": "# Nothing\n"}, "include-direction")

    def test_an_include_in_a_comment_does_not_count(self):
        self.assert_rules({"src/ledger/a.h": HEADER + '// #include "journal/log.h"\n'})

    def test_third_party_headers(self):
        for target in ("sqlite3.h", "nlohmann/json.hpp", "regex", "iostream", "CLI/CLI.hpp"):
            with self.subTest(target):
                self.assert_rules({"src/ledger/a.h": HEADER + f"#include <{target}>\n"},
                                  "header-include")

    def test_pragma_once(self):
        self.assert_rules({"src/ledger/a.h": "struct A {};\n"}, "pragma-once")

    def test_own_header_first(self):
        self.assert_rules({
            "src/ledger/a.h": HEADER,
            "src/ledger/a.cpp": '#include <vector>\n#include "ledger/a.h"\n',
            "src/ledger/a_test.cpp": '#include "ledger/a.h"\n'}, "own-header-first")

    def test_the_core_stays_pure(self):
        self.assert_rules({"src/core/a.h": HEADER + "#include <chrono>\n"}, "core-include")
        self.assert_rules({"src/core/a.h": HEADER + "#include <sqlite3.h>\n"},
                          "core-include", "header-include")
        self.assert_rules({"src/core/a.h": HEADER + "double score();\n"}, "core-float")
        self.assert_rules({"src/core/a.h": HEADER + "// a double dose\n"})
        self.assert_rules({"src/core/a.h": HEADER + "long t = std::time(nullptr);\n"},
                          "core-clock")

    def test_iteration_over_unordered_containers(self):
        declared = HEADER + "struct S { std::unordered_map<int, std::vector<int>> by_id_; };\n"
        loop = "void f(S& s) {\n  for (auto& [id, x] : s.by_id_) use(x);\n}\n"
        self.assert_rules({"src/core/a.h": declared + loop}, "core-order")
        self.assert_rules({"src/core/a.h": declared.replace("unordered_", "") + loop})

    def test_file_length(self):
        self.assert_rules({"src/ledger/a.h": HEADER + "\n" * 500}, "file-length")
        self.assert_rules({"src/ledger/a_test.cpp": "\n" * 501})
        self.assert_rules({"src/ledger/a_test.cpp": "\n" * 801}, "file-length")

    def test_function_length(self):
        source = "namespace neap {{\nint Thing::f(int a) const {{\n{}}}\n}}\n"
        self.assert_rules({"src/ledger/a.h": HEADER + source.format("  a++;\n" * 68)})
        self.assert_rules({"src/ledger/a.h": HEADER + source.format("  a++;\n" * 69)},
                          "function-length")
        self.assert_rules({"tools/a.py": "def f():\n" + "    x = 1\n" * 70}, "function-length")

    def test_a_long_class_is_not_a_long_function(self):
        self.assert_rules({"src/ledger/a.h":
                           HEADER + "class A {\n" + "  int f() { return '{'; }\n" * 90 + "};\n"})

    def test_columns(self):
        self.assert_rules({"src/ledger/a.h": HEADER + "// " + "x" * 98 + "\n"}, "columns")
        self.assert_rules({"src/ledger/a.h": HEADER + "int a; \n"}, "white-space")

    def test_vague_names(self):
        self.assert_rules({"src/ledger/string_util.h": HEADER}, "vague-name")
        self.assert_rules({"src/ledger/a.h": HEADER + "class NodeManager {};\n"}, "vague-name")
        self.assert_rules({"src/ledger/a.h": HEADER + "// the manager of a team\n"})

    def test_boolean_parameters(self):
        declaration = "void f(int a,\n       bool force = false);\n"
        self.assert_rules({"src/ledger/a.h": HEADER + declaration}, "boolean-parameter")
        self.assert_rules({"src/ledger/a.h": HEADER + "bool f(int a);\nstruct S { bool on; };\n"})

    def test_a_rule_may_be_allowed_with_a_reason(self):
        self.assert_rules({"src/ledger/a.h": HEADER +
                           "// tidy-allow(boolean-parameter): the C interface has it\n"
                           "void f(bool force);\n"})

    def test_machine_paths(self):
        self.assert_rules({"docs/a.md": f"see {HOME}/neap\n"}, "machine-path")
        self.assert_rules({"docs/a.md": "see docs/home/page and http://a.b/home/x\n"})

    def test_folders_without_a_test(self):
        self.assert_rules({"src/journal/log.cpp": "int a;\n"}, "missing-test")
        self.assert_rules({"src/journal/log.cpp": "int a;\n",
                           "tests/all/x_test.cpp": '#include "journal/log.h"\n'})

    def test_names_that_meet_when_files_are_compiled_as_one(self):
        own = "namespace neap {{\nnamespace {{\n{}\n}}  // namespace\n}}\n"
        first, second = "src/cli/a_test.cpp", "src/cli/b_test.cpp"
        for declared in ("constexpr int most = 3;", "int most(long a) {\n  return 1;\n}",
                         "struct most {\n};"):
            self.assert_rules({first: own.format("int most(int a);"), second: own.format(declared)},
                              "unnamed-name")
        self.assert_rules({first: own.format("int most(int a);"),
                           second: own.format("int f() {\n  int most = 1;\n  return most;\n}")})
        alias = own.format("using J = int;")
        self.assert_rules({first: alias, second: alias})
        elsewhere = own.replace("neap", "neap::b_test")
        self.assert_rules({first: own.format("int most;"), second: elsewhere.format("int most;")})
        self.assert_rules({first: own.format("int most;"),
                           "src/cli/c_property.cpp": own.format("int most;")})

    def test_assert(self):
        use = "inline void f() { assert(1); }\n"
        self.assert_rules({"src/ledger/a.h": HEADER + use}, "assert")
        self.assert_rules({"src/ledger/a.h": HEADER + "static_assert(1);\n"})


if __name__ == "__main__":
    unittest.main()
