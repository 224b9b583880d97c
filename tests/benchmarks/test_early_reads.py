from benchmarks.early_reads import Case, measure, row


def test_both_programs_call_what_they_need():
    found = measure(0.0, taken=True, runs=2, target="toy")
    assert {name: case.calls for name, case in found.items()} == {"waiting": 1, "early": 1}
    assert measure(0.0, taken=False, runs=2, target="toy")["waiting"].calls == 0


def test_a_row_tells_both_times_and_what_they_cost():
    found = {"waiting": Case(0.3, 0), "early": Case(0.2, 1)}
    assert row(0.1, False, found) == ["100", "no", "300", "200", "1.50", "0", "1"]
