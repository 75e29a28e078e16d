"""Edge cases that need a real cluster: the test that shows each, or the reason why none does.

T100 to T141 are shown on the embedded backend, too (`test_service_gangs`, `test_service_failures`).
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

SHOWN = {
    "T100": "kai/driver/test_crowd.py::test_no_gang_of_a_crowd_ever_runs_in_part_and_all_run_in_the_end",
    "T101": "kai/test_nvlink.py::test_claims_do_not_count_when_kai_looks_for_a_domain",
    "T102": "kai/driver/test_why.py::test_a_gang_over_the_limit_of_its_pool_waits_for_quota",
    "T108": "kai/driver/test_preemption.py::test_a_preempted_gang_says_so_waits_as_a_whole_and_runs_again",
    "T109": "kai/driver/test_why.py::test_a_gang_with_a_pod_that_cannot_be_created_waits_for_its_members",
    "T111": "kai/driver/test_driver.py::test_a_group_of_an_nvlink_pool_gets_a_compute_domain_that_goes_after_its_pods",
    "T112": "kai/driver/test_kills.py::test_a_killed_service_loses_nothing_creates_nothing_twice_and_leaves_nothing",
    "T130": "kai/driver/test_nodes.py::test_t130_t137_t138_t139_a_task_of_a_failed_node_starts_again_beside_the_others",
    "T131": "kai/driver/test_nodes.py::test_t130_t131_without_a_place_beside_the_survivors_the_whole_group_moves",
    "T132": "kai/driver/test_nodes.py::test_t132_t133_a_node_that_recovers_in_time_costs_nothing",
    "T133": "kai/driver/test_nodes.py::test_t132_t133_a_node_that_recovers_in_time_costs_nothing",
    "T134": "kai/driver/test_nodes.py::"
    "test_t134_t136_a_pod_that_stays_terminating_is_deleted_by_force_and_finished_tasks_stay_finished",
    "T135": "backends/kai/driver/test_pod_report.py::"
    "test_a_command_that_cannot_run_is_a_start_error_and_an_unknown_end_a_loss",
    "T136": "kai/driver/test_nodes.py::"
    "test_t134_t136_a_pod_that_stays_terminating_is_deleted_by_force_and_finished_tasks_stay_finished",
    "T137": "kai/driver/test_nodes.py::test_t130_t137_t138_t139_a_task_of_a_failed_node_starts_again_beside_the_others",
    "T138": "kai/driver/test_nodes.py::test_t130_t137_t138_t139_a_task_of_a_failed_node_starts_again_beside_the_others",
    "T139": "kai/driver/test_nodes.py::test_t130_t137_t138_t139_a_task_of_a_failed_node_starts_again_beside_the_others",
    "T140": "edge_cases/test_service_failures.py::test_t140_a_gang_that_never_ran_is_not_broken",
    "T141": "edge_cases/test_service_failures.py::test_t141_who_fails_decides_by_the_rules_of_the_group",
    "T160": "kai/driver/test_faults.py::"
    "test_without_its_controller_a_compute_domain_is_stuck_and_goes_when_that_is_back",
    "T162": "kai/driver/test_cleanup.py::"
    "test_a_held_compute_domain_or_pod_group_is_reported_as_stuck_and_the_workflow_finishes",
    "T163": "kai/driver/test_kills.py::test_a_killed_service_loses_nothing_creates_nothing_twice_and_leaves_nothing",
    "T164": "kai/driver/test_cleanup.py::"
    "test_a_held_compute_domain_or_pod_group_is_reported_as_stuck_and_the_workflow_finishes",
    "T165": "kai/driver/test_kills.py::test_a_killed_service_loses_nothing_creates_nothing_twice_and_leaves_nothing",
    "T167": "kai/driver/test_cleanup.py::test_a_channel_left_behind_is_named_with_its_node_until_its_claim_is_gone",
    "T169": "planning/test_nvlink_channels.py::test_tasks_that_share_a_node_take_none_and_the_plan_says_so",
    "T171": "backends/kai/test_render.py::"
    "test_a_pool_without_nvlink_has_no_compute_domains_and_refuses_who_asks_for_them",
    "T173": "kai/driver/test_cleanup.py::"
    "test_a_held_compute_domain_or_pod_group_is_reported_as_stuck_and_the_workflow_finishes",
    "T174": "kube/test_faults_on_lab.py::test_a_cluster_without_kai_and_grove_lacks_only_what_needs_them",
    "T177": "edge_cases/test_service_failures.py::"
    "test_t177_a_task_that_is_being_started_never_starts_once_it_is_cancelled",
}
_CHOSEN_BY_KAI = "KAI chooses the nodes; the engine's answer is shown on the embedded backend, in test_service_gangs."
ELSEWHERE = {
    **dict.fromkeys(("T103", "T104", "T105", "T106", "T110", "T113", "T114"), _CHOSEN_BY_KAI),
    "T107": "Coterie preempts nothing; KAI does so by its own rules (docs/kai.md, M).",
    "T161": "The name of a ComputeDomain ends in a hash of the workflow's id, its group and its placement.",
    "T166": "Nodes are labelled by the kubelet plugin of NVIDIA's driver, which no node of the lab has.",
    "T168": "The status of cliques is written by the daemons of a ComputeDomain, which no node of the lab runs.",
    "T170": "A ComputeDomain of the served driver has no such field, and a node has one channel.",
    "T172": "The status of daemons is written by the daemons of a ComputeDomain, which no node of the lab runs.",
    "T175": "There are no group templates.",
    "T176": "The report of a reboot belongs to the validation of a cluster; failed nodes are T130 to T134.",
}


# What clean-up must be, point by point.
CLEAN_UP = {
    "nothing is left after a kill at any write": "kai/driver/test_kills.py::"
    "test_a_killed_service_loses_nothing_creates_nothing_twice_and_leaves_nothing",
    "pods are gone before the PodGroup, and that before the ComputeDomain": "kai/driver/test_driver.py::"
    "test_a_group_of_an_nvlink_pool_gets_a_compute_domain_that_goes_after_its_pods",
    "an object that exists is adopted by its store and content": "kai/driver/test_cleanup.py::"
    "test_an_object_of_the_same_name_is_adopted_by_its_store_and_content_and_never_somebody_elses",
    "deletion goes on past a kind that fails, and is tried again": "kai/driver/test_faults.py::"
    "test_clean_up_goes_on_past_a_kind_that_cannot_be_deleted_and_tries_it_again",
    "what is stuck is told with its age": "kai/driver/test_cleanup.py::"
    "test_a_held_compute_domain_or_pod_group_is_reported_as_stuck_and_the_workflow_finishes",
    "orphans are swept at the start and later, and foreign objects left alone": "kai/driver/test_cleanup.py::"
    "test_orphans_are_swept_at_the_start_and_later_and_foreign_objects_are_left_alone",
    "a topology is replaced without a gap": "kai/driver/test_driver.py::"
    "test_an_identical_pool_writes_nothing_and_new_levels_make_a_new_topology_first",
    "the folder of a deleted workflow is removed from its workspace": "kai/driver/test_real_nodes.py::"
    "test_the_folder_of_a_deleted_workflow_is_removed_from_the_workspace_also_after_a_restart",
    "objects of an earlier version are adopted or removed, and those in use stay": "kai/driver/test_cleanup.py::"
    "test_queues_and_topologies_of_an_earlier_version_are_adopted_or_removed_and_those_in_use_stay",
    "what was created before a refusal is removed": "kai/driver/test_cleanup.py::"
    "test_a_gang_of_which_the_cluster_refuses_a_pod_fails_and_leaves_nothing",
}


def test_every_case_of_a_cluster_is_shown_or_says_why_not() -> None:
    numbers = [*range(100, 115), *range(130, 142), *range(160, 178)]
    assert {f"T{number}" for number in numbers} == SHOWN.keys() | ELSEWHERE.keys()
    assert SHOWN.keys().isdisjoint(ELSEWHERE)


@pytest.mark.parametrize("place", sorted({*SHOWN.values(), *CLEAN_UP.values()}))
def test_the_test_that_shows_a_case_exists(place: str) -> None:
    file, _, name = place.partition("::")
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    names = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
    assert name in names
