"""Comparison of message definitions with a folder of protocol facts."""

from pathlib import Path

import pytest

from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.group_membership import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.group_records import GroupMetadataValue
from tests.protocol.check_facts import (
    Fact,
    check_folder,
    defined,
    differences,
    main,
    parse_api,
    parse_field,
    parse_records,
    snake_case,
)

HEARTBEAT = """\
Heartbeat  apiKey 12
request  valid 0-4  flexible 4+  listeners broker
  GroupId  string  0+  ~groupId
  GenerationId  int32  0+
  MemberId  string  0+
  GroupInstanceId  string  3+  null 3+  = null
response  valid 0-4  flexible 4+
  ThrottleTimeMs  int32  1+  ignorable
  ErrorCode  int16  0+
"""
GROUP_VALUE = """\
GroupMetadataValue  apiKey 2  valid 0-4  flexible 4+
  protocolType  string  0+
  members  []MemberMetadata  0+
  struct MemberMetadata  0+
    memberId  string  0+
    sessionTimeout  int32  0+
  currentStateTimestamp  int64  2+  = -1  ignorable
"""


def test_field_with_versions_of_its_tag_alone() -> None:
    plain = parse_field("NextProducerId  int64  1+  tag 1 @ 1+  = -1", "")
    assert parse_field("NextProducerId  int64    tag 1 @ 1+  = -1", "") == plain
    assert (plain.versions, plain.tag) == ("1+", 1)


def test_equal_definitions_have_no_difference() -> None:
    request, response = parse_api(HEARTBEAT)
    assert list(differences(defined(HeartbeatRequest), request)) == []
    assert list(differences(defined(HeartbeatResponse), response)) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("apiKey 12", "apiKey 13"),
        ("request  valid 0-4", "request  valid 0-5"),
        ("flexible 4+  listeners", "flexible 3+  listeners"),
        ("flexible 4+  listeners", "flexible 4+  latestVersionUnstable  listeners"),
        ("GenerationId  int32", "GenerationId  int64"),
        ("GenerationId  int32  0+", "GenerationId  int32  1+"),
        ("GenerationId  int32  0+", "GenerationId  int32  0+  = -1"),
        ("GenerationId  int32  0+", "GenerationId  int32  0+  ignorable"),
        ("GenerationId  int32  0+", "GenerationId  int32  0+  mapKey"),
        ("GenerationId  int32  0+", "GenerationId  int32  0+  tag 0 @ 0+"),
        ("GenerationId", "Generation"),
        ("null 3+", "null 4+"),
        ("  MemberId  string  0+\n", ""),
        ("MemberId  string  0+", "MemberId  string  0+\n  Reason  string  0+"),
        (
            "  GenerationId  int32  0+\n  MemberId  string  0+\n",
            "  MemberId  string  0+\n  GenerationId  int32  0+\n",
        ),
    ],
)
def test_difference_is_reported(right: str, wrong: str) -> None:
    changed = HEARTBEAT.replace(right, wrong, 1)
    assert changed != HEARTBEAT
    request, _response = parse_api(changed)
    assert list(differences(defined(HeartbeatRequest), request)) != []


def test_shared_struct_follows_its_field() -> None:
    (facts,) = parse_records(GROUP_VALUE)
    assert facts.name == GroupMetadataValue.__name__
    assert facts.number == 2
    assert [fact.path for fact in facts.fields] == [
        "protocol_type",
        "members",
        "members.member_id",
        "members.session_timeout",
        "current_state_timestamp",
    ]
    assert facts.fields[-1] == Fact(
        "current_state_timestamp", "int64", "2+", "none", None, -1, ignorable=True, map_key=False
    )


def test_nested_and_tagged_fields() -> None:
    facts = {fact.path: fact for fact in defined(FetchRequest).fields}
    assert facts["topics.partitions.high_watermark"] == Fact(
        "topics.partitions.high_watermark",
        "int64",
        "18+",
        "none",
        1,
        (1 << 63) - 1,
        ignorable=True,
        map_key=False,
    )
    assert facts["replica_state"].type == "ReplicaState"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ThrottleTimeMs", "throttle_time_ms"),
        ("timeoutMs", "timeout_ms"),
        ("Enable2Pc", "enable2_pc"),
        ("KRaftVersion", "k_raft_version"),
        ("LastKnownElr", "last_known_elr"),
    ],
)
def test_names(name: str, expected: str) -> None:
    assert snake_case(name) == expected


def test_missing_message_is_reported(tmp_path: Path) -> None:
    (tmp_path / "INDEX.txt").write_text("key  api\n12  Heartbeat  0-4  4+  broker\n")
    (tmp_path / "12_Heartbeat.txt").write_text(HEARTBEAT)
    found = list(check_folder(tmp_path))
    assert "FetchRequest: not among the facts" in found
    assert not any(line.startswith("Heartbeat") for line in found)
    assert found[-1].startswith("ApiKey: ")


def test_missing_folder_skips_comparison(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KCLIENT_PROTOCOL_FACTS", raising=False)
    assert main() == 0
    assert "nothing to compare with" in capsys.readouterr().out


def test_differences_fail_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "INDEX.txt").write_text("key  api\n")
    monkeypatch.setenv("KCLIENT_PROTOCOL_FACTS", str(tmp_path))
    assert main() == 1
    assert "HeartbeatRequest: not among the facts" in capsys.readouterr().out
