import os

from kclient.common.system_tasks import SystemTasks


def test_forked_child_has_its_own_process_id() -> None:
    tasks = SystemTasks()
    assert tasks.process_id() == os.getpid()
    child = os.fork()
    if child == 0:
        os._exit(0 if tasks.process_id() == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0
