"""Asks for all that workers and their jobs have, with neops' generated client, whose models check every answer.

Its only argument is the address. Under another status than the listed one this client returns nothing and does not say so, so
nothing is taken for a fault.
"""

import asyncio
import sys

from neops_workflow_engine_client import ApiClient, ApiException, Configuration
from neops_workflow_engine_client.api.app_api import AppApi
from neops_workflow_engine_client.api.blackboard_api import BlackboardApi
from neops_workflow_engine_client.api.function_block_api import FunctionBlockApi
from neops_workflow_engine_client.api.health_api import HealthApi
from neops_workflow_engine_client.api.license_api import LicenseApi
from neops_workflow_engine_client.api.version_api import VersionApi
from neops_workflow_engine_client.api.workers_api import WorkersApi
from neops_workflow_engine_client.models.version_compatibility_request_dto import VersionCompatibilityRequestDto


async def something(name: str, call):
    answer = await call
    if answer is None:
        raise SystemExit(f"{name}: the client understood nothing")
    print(name, flush=True)
    return answer


async def refused(name: str, call, status: int) -> None:
    try:
        await call
    except ApiException as error:
        if error.status == status:
            print(name, status, flush=True)
            return
        raise
    raise SystemExit(f"{name}: not refused with {status}")


async def main() -> None:
    async with ApiClient(Configuration(host=sys.argv[1])) as api:
        workers, blocks, board = WorkersApi(api), FunctionBlockApi(api), BlackboardApi(api)
        await something("health", HealthApi(api).health_controller_healthy())
        await something("hello", AppApi(api).app_controller_get_hello())
        await something("license", LicenseApi(api).license_controller_get())
        await something("version", VersionApi(api).version_controller_get_version())
        client = VersionCompatibilityRequestDto(version="0.43.0-beta.8", library="neops_workflow_engine_client")
        await something("compatible", VersionApi(api).version_controller_check_compatibility(client))
        found = await something("workers", workers.workers_controller_find_all(find_deleted=True, populate_function_blocks=True))
        online = await something("online", workers.workers_controller_find_online())
        assert found and online, "the test has started a worker"
        uuid = online[0].uuid
        await something("worker", workers.workers_controller_find_one(uuid))
        ids = await something("its blocks", workers.workers_controller_get_function_blocks(uuid))
        await something("its jobs", workers.workers_controller_get_jobs(uuid))
        await something("ping", workers.workers_controller_ping(uuid))
        registered = await something("blocks", blocks.function_blocks_controller_find_all(populate_workers=True))
        assert {block.function_block.id for block in registered} == set(ids)
        at = ("fb.test", "echo", "1.0.0")
        await something("block", blocks.function_blocks_controller_find_one_fb(*at))
        await something("registration", blocks.function_blocks_controller_find_one_fb_registration(*at))
        await something("serving", blocks.function_blocks_controller_get_workers_for_function_block(*at))
        await something("jobs", board.blackboard_controller_show_jobs())
        await something("active", board.blackboard_controller_show_active_jobs())
        page = await something("page", board.show_jobs_page(limit=50, include=["facets", "histogram", "result"]))
        for job in page.items:
            await something("result", board.show_job_result(job.job_id))
        nobody = "355f48a3-28e6-483f-b771-b61d305162bd"
        await refused("nobody", workers.workers_controller_find_one(nobody), 404)
        await refused("no job", board.show_job_result(nobody), 404)
        await something("cleanup", workers.workers_controller_cleanup())
        await something("cleanup offline", workers.workers_controller_cleanup_offline())


asyncio.run(main())
