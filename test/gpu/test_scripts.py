"""The programs of this folder that judge what a GPU did, tested without one."""

import math
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).parent

RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at k3+0x40
=========     and Read access at k3+0x80 [16 hazards]
=========
========= Error: Race reported between Write access at k5+0x10
=========     and Read access at k5+0x20 [8 hazards]
=========
========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)
"""
CLEAN = "========= COMPUTE-SANITIZER\nok\n========= ERROR SUMMARY: 0 errors\n"


class Sanitize(unittest.TestCase):
    def run_on(self, output, known="", code=0, tool="racecheck", wait=0, options=()):
        """What sanitize.py makes of a sanitizer that prints `output` and waits."""
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            (place / "sanitize.py").write_text((FOLDER / "sanitize.py").read_text())
            (place / "known-reports.txt").write_text(known)
            (place / "output").write_text(output)
            fake = place / "fake"
            fake.write_text(f"#!/bin/sh\ncat '{place}/output'\nsleep {wait}\nexit {code}\n")
            fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
            done = subprocess.run([sys.executable, place / "sanitize.py", f"--sanitizer={fake}", *options, tool, "true"],
                                  capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_nothing_is_fine(self):
        self.assertEqual(self.run_on(CLEAN)[0], 0)

    def test_a_report_is_a_failure(self):
        code, text = self.run_on(RACE)
        self.assertEqual(code, 1)
        self.assertIn("2 new reports", text)

    def test_what_is_known_is_not(self):
        code, text = self.run_on(RACE, "racecheck | k[35]\\+0x | ordered by an mbarrier\n")
        self.assertEqual(code, 0, text)
        self.assertIn("known, 2 times: ordered by an mbarrier", text)

    def test_one_of_two_is_known(self):
        code, text = self.run_on(RACE, "racecheck | k3\\+0x | ordered by an mbarrier\n")
        self.assertEqual(code, 1)
        self.assertIn("1 new reports", text)
        self.assertIn("k5+0x10", text)

    def test_known_to_another_tool(self):
        self.assertEqual(self.run_on(RACE, "memcheck | k | reason\n")[0], 1)

    def test_an_end_without_summary(self):
        self.assertEqual(self.run_on("========= COMPUTE-SANITIZER\n========= Target application crashed\n")[0], 1)

    def test_a_command_that_fails(self):
        self.assertEqual(self.run_on(CLEAN, code=3)[0], 1)

    def test_reports_of_one_place_are_one(self):
        place = "========= Error: Race reported between Write access at k3+0x40\n=========     and Read access at k3+0x80 "
        code, text = self.run_on("".join(f"{place}[{count} hazards]\n=========\n" for count in (16, 24)))
        self.assertEqual(code, 1)
        self.assertIn("2 times:\n", text)
        self.assertIn("2 new reports at 1 places", text)

    def test_time_is_over(self):
        code, text = self.run_on("========= COMPUTE-SANITIZER\nran  loss\n", wait=60, options=["--seconds=1"])
        self.assertEqual(code, 124, text)
        self.assertIn("ran  loss", text)

    def test_what_was_reported_before_time_was_over(self):
        code, text = self.run_on(RACE, wait=60, options=["--seconds=1"])
        self.assertEqual(code, 1, text)
        self.assertIn("2 new reports", text)

    def test_a_list_with_a_mistake(self):
        code, text = self.run_on(CLEAN, "racecheck | k3\n")
        self.assertEqual(code, 1)
        self.assertIn("known-reports.txt:1", text)

    def test_the_list_that_is_used(self):
        for line in (FOLDER / "known-reports.txt").read_text().splitlines():
            self.assertTrue(line.startswith("#") or len(line.split("|")) == 3, line)


class Compare(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path[:0] = [str(FOLDER), str(FOLDER.parents[1] / "python")]
        import compare
        cls.compare = compare

    def test_errors_are_relative_to_the_largest(self):
        self.assertAlmostEqual(self.compare.error_of([1.0, 201.0], [0.0, 200.0]), 0.005)

    def test_not_a_number_is_infinitely_wrong(self):
        self.assertEqual(self.compare.error_of([math.nan, 1.0], [0.0, 1.0]), math.inf)
        self.assertEqual(self.compare.error_of([1.0, math.nan], [0.0, 1.0]), math.inf)

    def test_another_length_is_infinitely_wrong(self):
        self.assertEqual(self.compare.error_of([1.0], [1.0, 2.0]), math.inf)

    def sample(self):
        return {"size": 4, "rms": math.sqrt(7.5), "largest": 4.0, "indices": [0, 3], "values": [1.0, 4.0]}

    def test_a_sample(self):
        self.assertLess(self.compare.error_of_sample([1.0, 2.0, 3.0, 4.0], self.sample()), 1e-12)

    def test_what_lies_between_counts_too(self):
        self.assertGreater(self.compare.error_of_sample([1.0, 2.5, 3.0, 4.0], self.sample()), 1e-2)
        self.assertEqual(self.compare.error_of_sample([1.0, math.nan, 3.0, 4.0], self.sample()), math.inf)

    def test_nested_lists(self):
        self.assertEqual(self.compare.flat_list([[1, 2], [3]]), [1, 2, 3])


    def test_root_mean_squares(self):
        self.assertAlmostEqual(self.compare.rms_error([1.0, 7.0], [0.0, 8.0]), 1 / math.sqrt(32))
        self.assertEqual(self.compare.rms_error([math.nan, 1.0], [0.0, 1.0]), math.inf)
        self.assertEqual(self.compare.rms_error([1.0], [1.0, 2.0]), math.inf)
        # What is nearly zero counts as large as the floor.
        self.assertAlmostEqual(self.compare.rms_error([0.01], [0.0], floor=0.1), 0.1)

    def test_root_mean_square_of_a_sample(self):
        error = self.compare.rms_error_of_sample
        self.assertLess(error([1.0, 2.0, 3.0, 4.0], self.sample()), 1e-12)
        self.assertAlmostEqual(error([1.0, 2.0, 3.0, 5.0], self.sample()), math.sqrt(0.5) / math.sqrt(7.5), 2)
        self.assertGreater(error([1.0, 20.0, 3.0, 4.0], self.sample()), 1)
        self.assertEqual(error([1.0, math.nan, 3.0, 4.0], self.sample()), math.inf)
        self.assertEqual(error([1.0], self.sample()), math.inf)

    def test_a_gradient_that_is_missing(self):
        error = self.compare.gradient_error
        found = {"a": [1.0], "b": [2.0]}
        self.assertEqual(error(found, found, self.compare.rms_error, self.compare.rms), 0)
        self.assertEqual(error({"a": [1.0]}, found, self.compare.rms_error, self.compare.rms), math.inf)

    def test_a_gradient_that_no_type_of_its_size_holds(self):
        def error(moved):
            return self.compare.gradient_error({"a": [1.5], "b": [2.0]}, {"a": [1.0], "b": [2.0]},
                                               self.compare.rms_error, self.compare.rms, moved)
        self.assertAlmostEqual(error({}), 0.5)
        self.assertAlmostEqual(error({"a": 0.4, "b": 9.0}), 0.5)
        self.assertEqual(error({"a": 0.6}), 0)

    def test_a_gradient_that_can_be_had_is_held_to_its_bound(self):
        self.assertAlmostEqual(self.compare.gradient_error({"a": [1.05]}, {"a": [1.0]}, self.compare.rms_error,
                                                           self.compare.rms, {"a": 0.09}), 0.05)

    def test_bounds_of_a_narrow_type(self):
        def forward(error):
            return self.compare.bounds_for("bf16", {"forward": error, "step": 0, "gradient": 0})["forward"]
        self.assertEqual(forward(0.0), 0.005)  # what one kernel may be off
        self.assertEqual(forward(0.004), 0.008)  # twice the processor's
        self.assertEqual(forward(0.5), 0.02)  # and never more than a model may
        self.assertEqual(self.compare.bounds_for("f32", None)["forward"], 5e-5)

    def test_a_compute_type_in_a_name(self):
        def base(name):
            return self.compare.base_of(pathlib.Path("mixers") / name).name
        self.assertEqual([base("gdn.hbx"), base("gdn-bf16.hbx"), base("a-b.hbx")], ["gdn", "gdn", "a-b"])


class Packed(unittest.TestCase):
    """What gives out compiled functions where there is no compiler."""

    def run_on(self, folder, text, **environment):
        program = folder / "packed-hybridc.py"
        program.write_text((FOLDER / program.name).read_text())
        done = subprocess.run([sys.executable, program, "-", "-o", folder / "out", "--target=cpu"], input=text,
                              text=True, capture_output=True, env={**os.environ, **environment})
        return done.returncode, done.stderr

    def test_only_what_was_packed(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            compiler = folder / "hybridc"
            compiler.write_text("#!/bin/sh\ncat >\"$3\"; echo \"$4\" >>\"$3\"\n")
            compiler.chmod(0o755)
            code, text = self.run_on(folder, "one\n")
            self.assertEqual(code, 1)
            self.assertIn("no such function was packed", text)
            packing = {"HYBRID_PACK_WITH": str(compiler), "HYBRID_PACK_TARGET": "cpu,cuda:sm_90a"}
            self.assertEqual(self.run_on(folder, "one\n", **packing)[0], 0)
            (folder / "out").unlink()
            self.assertEqual(self.run_on(folder, "one\n")[0], 0)
            self.assertEqual((folder / "out").read_text(), "one\n--target=cpu,cuda:sm_90a\n")
            self.assertEqual(self.run_on(folder, "two\n")[0], 1)


class Run(unittest.TestCase):
    """run.sh on a folder whose programs are stand-ins."""

    def run_on(self, check_artefact, *options, compare="pass", artefacts=("one", "two")):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "artefacts").mkdir()
            for artefact in artefacts:
                (folder / "artefacts" / f"{artefact}.hbx").touch()
            program = folder / "check-artefact"
            program.write_text(f"#!/bin/sh\n{check_artefact}\n")
            program.chmod(0o755)
            (folder / "compare.py").write_text(compare)
            done = subprocess.run([FOLDER / "run.sh", "--device=cpu", *options, folder], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            return done.returncode, done.stdout

    def test_all_pass(self):
        code, text = self.run_on("exit 0")
        self.assertEqual(code, 0, text)
        self.assertEqual(text.count("pass "), 4, text)

    def test_one_fails(self):
        code, text = self.run_on("echo 'ok  this'; echo 'FAIL that'; case $1 in *two*) exit 1;; esac")
        self.assertEqual(code, 1)
        self.assertIn("FAIL that", text)
        self.assertNotIn("ok  this", text)
        self.assertTrue(text.rstrip().endswith("failed:\ntwo, 65 tokens"), text)

    def test_a_comparison_fails(self):
        self.assertEqual(self.run_on("exit 0", compare="raise SystemExit(1)")[0], 1)

    def test_time_is_over(self):
        code, text = self.run_on("exec sleep 60", "--seconds=1")
        self.assertEqual(code, 2, text)
        self.assertIn("not done for lack of time:\n", text)
        self.assertIn("one, 65 tokens", text)

    def test_a_part_has_time_of_its_own(self):
        code, text = self.run_on("exec sleep 60", "--parts=artefacts:1,oracle")
        self.assertEqual(code, 2, text)
        self.assertIn("one, 65 tokens", text)
        self.assertIn("pass  every mixer beside the oracle", text)
        self.assertNotIn("random stacks", text)

    def test_a_part_that_there_is_not(self):
        code, text = self.run_on("exit 0", "--parts=oracle,sums")
        self.assertEqual(code, 2)
        self.assertIn("unknown part 'sums'", text)

    def test_a_comparison_that_had_no_time(self):
        code, text = self.run_on("exit 0", compare="raise SystemExit(124)")
        self.assertEqual(code, 2, text)

    def test_checks_run_together(self):
        # Each waits for the other.
        code, text = self.run_on("touch $1.here; for i in $(seq 300); do "
                                 "[ -e artefacts/one.hbx.here ] && [ -e artefacts/two.hbx.here ] && exit 0; "
                                 "sleep 0.1; done; exit 1")
        self.assertEqual(code, 0, text)

    def test_the_same_in_f32_goes_along(self):
        code, text = self.run_on("case $1-$3 in *two-bf16*) [ \"$4\" = --exact=artefacts/two.hbx ];; "
                                 "*) [ $# = 3 ];; esac", artefacts=("one", "two", "two-bf16", "three-f16"))
        self.assertEqual(code, 0, text)


if __name__ == "__main__":
    unittest.main()
