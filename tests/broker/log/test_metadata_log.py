"""Log of the cluster metadata, outside of the log manager."""

from kclient.broker.log.log_dir_failure_channel import LogDirFailureChannel
from kclient.broker.log.log_file_utils import METADATA_PARTITION
from kclient.broker.log.metadata_log import open_metadata_log
from kclient.common.runtime import Runtime
from tests.support.disks.log_bench import ManagerBench, make_batch


def test_metadata_log_is_opened_outside_of_the_log_manager(
    runtime: Runtime, managers: ManagerBench
) -> None:
    failures = LogDirFailureChannel(managers.data_dir)
    manager = managers.start()
    log = open_metadata_log(runtime, managers.data_dir, failures)
    log.append_as_leader(make_batch(3), 4)
    log.flush()
    log.maintenance.release()
    manager.load()
    assert manager.all_logs() == []
    manager.close()
    assert managers.text("recovery-point-offset-checkpoint") == "0\n0\n"
    again = open_metadata_log(runtime, managers.data_dir, failures)
    assert (again.partition, again.log_end_offset, again.latest_epoch) == (METADATA_PARTITION, 3, 4)
    again.maintenance.release()
