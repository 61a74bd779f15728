"""Function blocks that the tests let neops' own worker serve."""

import json
import os
import time

from neops_worker_sdk.function_block.function_block import (
    FunctionBlock,
    FunctionBlockAcquireResult,
    FunctionBlockParams,
    FunctionBlockResult,
    FunctionBlockResultData,
    FunctionBlockRollbackResult,
)
from neops_worker_sdk.registry.decorator import register_function_block
from neops_worker_sdk.registry.registration import Registration


class Params(FunctionBlockParams):
    message: str = "hi"
    seconds: float = 0
    count: int = 1


class Data(FunctionBlockResultData):
    echoed: str
    count: int = 1
    extra: str | None = None


def tell(what: str, message: str) -> None:
    """A line for the test, in the file it named."""
    path = os.environ.get("NEOPS_TOLD")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "message": message, "worker": os.environ.get("WORKER_NAME")}) + "\n")


class Base(FunctionBlock[Params, Data]):
    async def acquire(self, params) -> FunctionBlockAcquireResult:
        tell("acquire", type(self).__name__)
        return FunctionBlockAcquireResult(success=True, message="ok")

    async def run(self, params: Params, context) -> FunctionBlockResult[Data]:
        tell("run", f"{type(self).__name__} {params.message}")
        return FunctionBlockResult(
            success=True, message=f"said {params.message}", data=Data(echoed=params.message, count=params.count)
        )

    async def rollback(self, params, context, result_from_failed=None) -> FunctionBlockRollbackResult:
        tell("rollback", f"{type(self).__name__} {params.message}")
        return FunctionBlockRollbackResult(success=True, message="undone")


def block(name: str, **more):
    settings = {"run_on": "global", "fb_type": "execute", **more}
    return register_function_block(
        Registration(name=name, package="fb.test", description=name, param_cls=Params, result_cls=Data, **settings)
    )


@block("echo", is_pure=True, is_idempotent=True, fb_type="check")
class Echo(Base):
    pass


@block("change", reversible=True)
class Change(Base):
    """Leaves something behind, and can undo it."""


@block("burn")
class Burn(Base):
    """Leaves something behind that stays."""


@block("refuse")
class Refuse(Base):
    async def acquire(self, params) -> FunctionBlockAcquireResult:
        raise ValueError("not today")


@block("raises", is_pure=True)
class Raises(Base):
    async def run(self, params: Params, context) -> FunctionBlockResult[Data]:
        tell("run", f"Raises {params.message}")
        raise ValueError(params.message)


@block("breaks", reversible=True)
class Breaks(Base):
    async def run(self, params: Params, context) -> FunctionBlockResult[Data]:
        tell("run", f"Breaks {params.message}")
        return FunctionBlockResult(success=False, message="broken", data=None)


@block("slow", is_idempotent=True)
class Slow(Base):
    async def run(self, params: Params, context) -> FunctionBlockResult[Data]:
        tell("began", params.message)
        time.sleep(params.seconds)
        return await super().run(params, context)


@block("rename", run_on="device", is_idempotent=True)
class Rename(Base):
    """Changes the device it runs on."""

    async def run(self, params: Params, context) -> FunctionBlockResult[Data]:
        context.device.vendor = params.message
        return await super().run(params, context)
