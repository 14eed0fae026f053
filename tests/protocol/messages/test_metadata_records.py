"""Records of ``__cluster_metadata`` with their frame."""

import pytest

from kclient.common.errors import KafkaError
from kclient.protocol.messages.metadata_records import (
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
)


def test_metadata_records() -> None:
    record = FeatureLevelRecord(name="metadata.version", feature_level=25)
    data = record.encode_framed(0)
    assert data.hex() == "010c00" + "11" + b"metadata.version".hex() + "0019" + "00"
    assert MetadataRecord.decode_framed(data) == record
    change = PartitionChangeRecord(partition_id=1, isr=[1, 2], leader=2)
    assert MetadataRecord.decode_framed(change.encode_framed(2)) == change
    assert MetadataRecord.decode_framed(NoOpRecord().encode_framed(0)) == NoOpRecord()


@pytest.mark.parametrize("data", ["", "01", "0114", "00140000", "02140000", "01630000", "01140100"])
def test_malformed_metadata_records_are_refused(data: str) -> None:
    with pytest.raises(KafkaError):
        MetadataRecord.decode_framed(bytes.fromhex(data))
