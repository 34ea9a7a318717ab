#!/usr/bin/env python3
"""The needle experiment with a few steps: data, resuming, table and picture.

    test_needle.py BIN     BIN is the folder of hybridc and hybrid-run
"""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import make_data
import picture

HERE = pathlib.Path(__file__).resolve().parent
SMALL = ["--seeds=3", "--control-seeds=", "--steps=2", "--batch=4", "--eval-rows=40", "--multiples=1,2",
         "--cpu-levels=x86-64"]


class Data(unittest.TestCase):
    def test_one_needle_behind_one_marker(self):
        places = set()
        for ids, labels in make_data.rows(200, 16, 8, 3):
            self.assertEqual((len(ids), len(labels), ids[-1]), (16, 16, 0))
            self.assertEqual(ids.count(1), 1)
            place = ids.index(1)
            places.add(place)
            self.assertEqual(labels, [make_data.IGNORED] * 15 + [ids[place + 1]])
            self.assertTrue(all(2 <= token < 10 for token in ids if token > 1))
        self.assertEqual(places, set(range(14)))

    def test_seeds_differ_and_repeat(self):
        self.assertEqual(list(make_data.rows(5, 16, 8, 0)), list(make_data.rows(5, 16, 8, 0)))
        self.assertNotEqual(list(make_data.rows(5, 16, 8, 0)), list(make_data.rows(5, 16, 8, 1)))

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.safetensors"
            make_data.write_safetensors(str(path), 3, 16, make_data.rows(3, 16, 8, 0))
            raw = path.read_bytes()
        size = struct.unpack("<Q", raw[:8])[0]
        header, body = json.loads(raw[8:8 + size]), raw[8 + size:]
        self.assertEqual(header["ids"]["shape"], [3, 16])
        begin, end = header["labels"]["data_offsets"]
        labels = struct.unpack("<48i", body[begin:end])
        self.assertEqual(labels[47], list(make_data.rows(3, 16, 8, 0))[2][1][15])


class Picture(unittest.TestCase):
    def test_every_seed_has_a_line(self):
        text = picture.draw([1, 2], 64, {"plain": [[100, 50], [100, 0]], "both": [[100, 100]]}, {"plain": [[90, 80]]})
        points = [line.get("points") for line in xml.etree.ElementTree.fromstring(text).iter() if line.get("points")]
        for ends in ("46.0,52.0 186.0,147.0", "46.0,52.0 186.0,242.0", "46.0,71.0 186.0,90.0", "216.0,52.0 356.0,52.0"):
            self.assertIn(ends, points)


class WholeExperiment(unittest.TestCase):
    bin = None

    def needle(self, out, *more):
        return subprocess.run([sys.executable, HERE / "needle.py", f"--bin={self.bin}", f"--out={out}", *SMALL, *more],
                              capture_output=True, text=True, check=False)

    def test_small_run(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            first = self.needle(out)
            self.assertEqual(first.returncode, 0, first.stderr)
            table = (out / "table.md").read_text()
            rows = {(gates, seed, variant): values for gates, seed, variant, *values in
                    (re.split(r" *\| *", line)[1:-1] for line in table.splitlines()[2:])}
            self.assertEqual(len(rows), 4, table)
            # At the trained length log-n scales by 1 and the window holds everything.
            for (gates, seed, _), values in rows.items():
                self.assertEqual(values[0], rows[gates, seed, "plain"][0], table)
            xml.etree.ElementTree.fromstring((out / "accuracy.svg").read_text())

            self.one_number_is_missing(out, table)
            other = self.needle(out, "--steps=3")
            self.assertEqual(other.returncode, 1)
            self.assertIn("was made with steps 2, now steps is 3; give another folder with --out", other.stderr)

    def one_number_is_missing(self, out, table):
        """A broken-off experiment goes on and ends in the same table."""
        path = out / "results.json"
        results = json.loads(path.read_text())
        del results["accuracy"]["gates near 1, seed 3, both, 128 tokens"]
        path.write_text(json.dumps(results))
        again = self.needle(out)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((out / "table.md").read_text(), table)


if __name__ == "__main__":
    WholeExperiment.bin = sys.argv.pop(1)
    unittest.main()
