"""The probes by their names."""

from __future__ import annotations

from composcope.probes.catalog import PROBES, standard


def test_probes_stand_in_the_order_of_the_report() -> None:
    names = ["neurons", "lookback", "patching", "trajectory", "min-k", "readout", "faithfulness"]
    assert list(PROBES) == names and list(standard()) == names[:5]
