"""Preflight asks for the rights that the chart's Role grants; tests/apiserver proves that no more are used."""

from pathlib import Path

import yaml

from switchover.adapters.survey import GROUP_RIGHTS, RIGHTS

ROLE = Path(__file__).parents[2] / "helm" / "switchover" / "templates" / "role.yaml"
OTHERS = {"events", "kafkamigrations", "kafkamigrations/status", "consumergroupmigrations", "consumergroupmigrations/status"}
"""Without these there would be no status to tell of a missing right."""


def test_preflight_asks_for_what_the_role_grants():
    rules = yaml.safe_load(ROLE.read_text().split("rules:\n")[1].split("{{")[0])
    granted = {(group, resource): set(rule["verbs"]) for rule in rules for group in rule["apiGroups"]
               for resource in rule["resources"] if resource not in OTHERS}
    asked = {each: {*RIGHTS.get(each, ()), *GROUP_RIGHTS.get(each, ())} for each in RIGHTS.keys() | GROUP_RIGHTS.keys()}
    assert granted == asked
