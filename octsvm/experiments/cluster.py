"""A run on a Dask cluster: batches travel with their rows of data, cells come back to the client, which records them."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Iterator
from itertools import islice
from typing import Any

from .. import __version__
from ..errors import InvalidParameter, SchedulerLost
from .batch_queue import BatchQueue
from .store import LeaseLost
from .work import on_interrupt, return_batch

TIMEOUT = 20.0  # seconds for the scheduler to answer


def work(queue: BatchQueue, scheduler: str, jobs: int) -> None:
    """Work through a queue on the scheduler's workers, with two batches for each of their threads under way.

    A batch whose worker dies is run again by Dask on another one; where that happens to it again and again, the queue
    decides. A worker may join or leave at any time.

    Raises
    ------
    SchedulerLost, InvalidParameter
    """
    from distributed import KilledWorker, as_completed

    with _client(scheduler, jobs) as client:
        while queue.wait():
            under_way, number, tasks = as_completed(raise_errors=False), dict[str, int](), queue.tasks()

            def fill(under_way: Any = under_way, number: dict[str, int] = number, tasks: Any = tasks) -> None:
                most = max(2, 2 * sum(client.nthreads().values()))
                for task in islice(tasks, max(0, most - len(number))):
                    future = client.submit(return_batch, task, pure=False)
                    number[future.key] = task.batch
                    under_way.add(future)

            try:
                fill()
                for future in under_way:
                    batch = number.pop(future.key)
                    error = future.exception() if future.status == "error" else None
                    if future.status == "finished":
                        rows, kind = future.result()
                        _record(queue, batch, rows, kind)
                        queue.finished(batch)
                    elif future.status == "error" and not isinstance(error, KilledWorker):
                        assert error is not None
                        raise error
                    elif client.status != "running":
                        raise SchedulerLost(
                            f"The Dask scheduler {scheduler} is gone. Finished batches are kept; start it again, then "
                            "run again."
                        )
                    else:
                        queue.died([batch])
                    fill()
            finally:
                with contextlib.suppress(Exception):  # of a scheduler that is gone
                    client.cancel(list(under_way.futures), force=True)


def _record(queue: BatchQueue, batch: int, rows: Any, kind: dict[str, Any]) -> None:
    if kind["octsvm"] != __version__:
        raise InvalidParameter(
            f"The workers have octsvm {kind['octsvm']}, and this is {__version__}: their cells would not be alike. "
            "Install one version everywhere."
        )
    where = repr(sorted(kind.items()))
    if where not in queue.machines:
        queue.machines[where] = queue.store.enter(kind)
    with contextlib.suppress(LeaseLost):
        queue.store.record(batch, queue.run, rows, on=queue.machines[where])


@contextlib.contextmanager
def _client(scheduler: str, jobs: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.ERROR)
    with contextlib.ExitStack() as stack:
        address: Any = scheduler
        if scheduler == "local":
            quiet: Any = {"dashboard_address": None, "silence_logs": logging.ERROR}
            # Also in the processes that start here: stopping them is for this one.
            with on_interrupt(signal.SIG_IGN):
                address = stack.enter_context(LocalCluster(n_workers=jobs, threads_per_worker=1, **quiet))
        try:
            client = stack.enter_context(Client(address, timeout=TIMEOUT))
        except (OSError, TimeoutError, ValueError) as error:
            raise SchedulerLost(
                f"No Dask scheduler answers at {scheduler!r} ({' '.join(str(error).split())}). Start one with dask "
                'scheduler, and workers with dask worker; or take "local".'
            ) from None
        yield client
