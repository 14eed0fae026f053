"""Random groups and partition counts, and the assignment in a form that is easy to compare."""

from collections.abc import Mapping

from hypothesis import strategies as st

from kclient.consumer.assignors import MemberSubscription, PartitionAssignor

TOPICS = ["a", "b", "c", "d"]

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12))
members = st.dictionaries(
    st.text("mnop", min_size=1, max_size=4),
    st.builds(
        MemberSubscription,
        st.lists(st.sampled_from(TOPICS), unique=True).map(tuple),
        group_instance_id=st.none() | st.text("xyz", min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=7,
)


def shares(
    assignor: PartitionAssignor,
    partitions: Mapping[str, int],
    group: Mapping[str, MemberSubscription],
) -> dict[str, list[tuple[str, int]]]:
    given_out = assignor.assign(partitions, group)
    return {
        member: [(each.topic, each.partition) for each in share.partitions]
        for member, share in given_out.items()
    }
