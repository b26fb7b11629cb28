"""Loaded by a worker of Dask, makes it die of every task: a stand-in for too little memory."""

import os

from rindices.training import execution


def dask_setup(_):
    """Replace training; Dask tells a worker by this name."""
    execution.train_chunk = lambda *_, **__: os._exit(9)
