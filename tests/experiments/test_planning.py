"""The table of simulated studies that the package ships with."""

from planning import stamp

from rindices.run import first_look_and_power


def test_the_table_was_made_with_this_version_of_the_procedure():
    made_with = first_look_and_power._FILE.read_text(encoding="utf-8").partition("\n")[0]
    assert made_with.endswith(f"stamp {stamp()}")
