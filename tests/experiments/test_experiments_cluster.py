"""Runs of experiments on a Dask cluster: the cells are those of a run on this machine, also when a worker dies."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import small_runs
from small_runs import comparable, gone, load, protocol, until, whole

import octsvm
from octsvm.experiments import read_cells, run


def forked_workers(distributed: Any) -> Any:
    """Workers are forks of one process that has imported what they need, which takes seconds."""
    import dask

    chosen = dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    context = distributed.utils.get_mp_context()
    context.set_forkserver_preload(["distributed", "octsvm.experiments.work"])
    return chosen


@pytest.mark.skipif(os.name != "posix", reason="forks, and a signal of POSIX")
@pytest.mark.slow
def test_a_cluster_loses_a_worker(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    store, undisturbed = tmp_path / "cells.sqlite", small_runs.undisturbed(tmp_path / "undisturbed.sqlite")
    with (
        forked_workers(distributed),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
    ):
        victims = [nanny.process.pid for nanny in cluster.workers.values()]

        def kill() -> None:
            until(store, 30)
            os.kill(victims[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        found = run(protocol(), store, load=load, scheduler=cluster.scheduler_address)
        killer.join()
        assert found.complete
        assert found.fitted == len(undisturbed)
        assert gone(victims[0])
    pd.testing.assert_frame_equal(comparable(read_cells(store)), undisturbed)
    whole(store)
    assert run(protocol(), store, load=load).fitted == 0


@pytest.mark.slow
def test_no_scheduler_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("octsvm.experiments.cluster.TIMEOUT", 0.2)
    with pytest.raises(octsvm.SchedulerLost, match="dask scheduler"):
        run(protocol(), tmp_path / "cells.sqlite", load=load, scheduler="tcp://127.0.0.1:9")
