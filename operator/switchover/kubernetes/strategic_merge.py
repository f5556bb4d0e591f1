"""A strategic merge patch of a pod template, as the API server and kubectl apply it.

How lists are merged stands in tags of the types in k8s.io/api, core/v1 (`patchStrategy`, `patchMergeKey`), and what a
directive does in `mergeMap` and `mergeSlice` of k8s.io/apimachinery, pkg/util/strategicpatch. No maintained Python library
has both. Fields that the API server fills in by itself are not there yet.
"""

from collections.abc import Hashable, Mapping
from copy import deepcopy
from typing import Any

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "env": "name",
    "ports": "containerPort", "volumes": "name", "volumeMounts": "mountPath", "volumeDevices": "devicePath",
    "imagePullSecrets": "name", "hostAliases": "ip", "topologySpreadConstraints": "topologyKey", "schedulingGates": "name",
    "resourceClaims": "name",
}
"""The lists of a pod template that are merged item by item, and the key of their items; every other is replaced."""

PATCH, RETAIN = "$patch", "$retainKeys"
ORDER, DELETE_FROM = "$setElementOrder/", "$deleteFromPrimitiveList/"

Object = dict[str, Any]


class BadPatch(Exception):
    """The patch means nothing where it is applied; the message names the path."""


def merged(original: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    """What the patch makes of the original, a pod template; neither is changed. Raises BadPatch."""
    _check_directives(patch, "")
    result = _object(deepcopy(dict(original)), deepcopy(dict(patch)), "")
    _check_shape(result)
    stored: Object = _as_stored(result)
    return stored


def _check_directives(patch: Any, at: str) -> None:
    """Only those that are known: whatever else begins with a dollar, the API server drops silently."""
    for key, value in patch.items() if isinstance(patch, Mapping) else ():
        if key.startswith("$") and key not in (PATCH, RETAIN) and not key.startswith((ORDER, DELETE_FROM)):
            raise BadPatch(f"{_below(at, key)} is no directive")
        _check_directives(value, _below(at, key))
    for value in patch if isinstance(patch, list) else ():
        _check_directives(value, at)


def _object(original: Object, patch: Object, at: str) -> Object:
    if PATCH in patch:
        return _directed(patch.pop(PATCH), patch, at)
    _retain(original, patch, at)
    _order(original, patch, at)
    for name, value in patch.items():
        key = name.removeprefix(DELETE_FROM)
        if key != name and key not in original:
            continue
        if key != name:
            original[key] = _without(original[key], value, _below(at, name))
        elif value is None:
            original.pop(key, None)
        elif isinstance(value, dict) and isinstance(original.get(key), dict):
            original[key] = _object(original[key], value, _below(at, key))
        elif isinstance(value, list) and isinstance(original.get(key), list):
            original[key] = _list(original[key], value, key, _below(at, key))
        elif isinstance(value, dict) and PATCH in value:
            original.pop(key, None)
        else:
            original[key] = _new(value)
    return original


def _directed(directive: Any, patch: Object, at: str) -> Object:
    """The object itself is deleted or replaced."""
    if directive not in ("delete", "replace"):
        raise BadPatch(f"{at or 'the patch'}: {PATCH} is replace or delete, and not {directive}")
    return {key: _plain(value, _below(at, key)) for key, value in patch.items()
            if directive == "replace" and value is not None and not key.startswith("$")}


def _retain(original: Object, patch: Object, at: str) -> None:
    """Of the original stay only the keys that are listed."""
    if RETAIN not in patch:
        return
    keys = _scalars(patch.pop(RETAIN), _below(at, RETAIN))
    if extra := [key for key, value in patch.items() if value is not None and not key.startswith("$") and key not in keys]:
        raise BadPatch(f"{_below(at, extra[0])} is not among the keys of {RETAIN}")
    for key in [key for key in original if key not in keys]:
        del original[key]


def _without(original: Any, values: Any, at: str) -> list[Any]:
    gone = _scalars(values, at)
    return [value for value in _scalars(original, at) if value not in gone]


# --- lists --------------------------------------------------------------------------------------------------------------


def _list(original: list[Any], patch: list[Any], name: str, at: str) -> list[Any]:
    key = MERGE_KEYS.get(name)
    if key is None:
        return [_plain(value, at) for value in patch]
    _check_items(original, key, at)
    _check_items(patch, key, at)
    if any(item.get(PATCH) == "replace" for item in patch):
        return [_plain(item, at) for item in patch if PATCH not in item]
    gone = {item[key] for item in patch if PATCH in item}
    left = [item for item in original if item[key] not in gone]
    wanted = [item for item in patch if PATCH not in item]
    both = [*left]
    for item in wanted:
        found = next((index for index, each in enumerate(both) if each[key] == item[key]), None)
        if found is None:
            both.append(_plain(item, f"{at}[{item[key]}]"))
        else:
            both[found] = _object(both[found], item, f"{at}[{item[key]}]")
    return _ordered(both, [item[key] for item in wanted], [item[key] for item in left], key)


def _order(original: Object, patch: Object, at: str) -> None:
    """Merge each list that an order is given for, and put it into that order."""
    for directive in [name for name in patch if name.startswith(ORDER)]:
        order, name = patch.pop(directive), directive.removeprefix(ORDER)
        where, key = _below(at, directive), MERGE_KEYS.get(name)
        if key is None:
            raise BadPatch(f"{where}: {name} is no list that is merged")
        _check_items(order, key, where)
        wanted, given = [item[key] for item in order], patch.pop(name, None)
        before = original.get(name)
        if given is not None:
            _check_items(given, key, _below(at, name))
            listed = [item[key] for item in given if PATCH not in item]
            if [value for value in wanted if value in listed] != listed:
                raise BadPatch(f"{where} does not have the items of {_below(at, name)} in their order")
            _object(original, {name: given}, at)
        if name in original:
            original[name] = _ordered(original[name], wanted, [item[key] for item in before or ()], key)


def _ordered(items: list[Object], wanted: list[Hashable], before: list[Hashable], key: str) -> list[Object]:
    """Those of the patch in its order, among the others in theirs, as far as both were there before (mergeSortedSlice)."""
    named = sorted((item for item in items if item[key] in wanted), key=lambda item: wanted.index(item[key]))
    others = [item for item in items if item[key] not in wanted]
    result: list[Object] = []
    while named and others:
        first, second = others[0][key], named[0][key]
        is_before = first in before and second in before and before.index(first) < before.index(second)
        result.append((others if is_before else named).pop(0))
    return [*result, *others, *named]


def _check_items(items: Any, key: str, at: str) -> None:
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadPatch(f"{at} must be a list of objects")
    for item in items:
        directive = item.get(PATCH)
        if directive not in (None, "delete", "replace"):
            raise BadPatch(f"{at}: {PATCH} is replace or delete, and not {directive}")
        if directive != "replace" and not isinstance(item.get(key), str | int):
            raise BadPatch(f"an item of {at} has no {key}, by which items are merged")


def _as_stored(value: Any) -> Any:
    """Without empty lists, which the API server stores nowhere in a pod template."""
    if isinstance(value, dict):
        return {key: _as_stored(each) for key, each in value.items() if each != []}
    return [_as_stored(each) for each in value] if isinstance(value, list) else value


# --- the shape of a pod template ----------------------------------------------------------------------------------------


def _check_shape(template: Object) -> None:
    """That it can be read as one; all else that is wrong with it, the API server finds in a dry run."""
    spec: Any = template.get("spec")
    _check(spec, dict, "spec")
    _check(template.get("metadata", {}), dict, "metadata")
    for at, part in [("spec", spec), *_items(spec, "initContainers"), *_items(spec, "containers")]:
        for name in part.keys() & MERGE_KEYS.keys():
            _check_items(part[name], MERGE_KEYS[name], _below(at, name))
    for at, container in [*_items(spec, "initContainers"), *_items(spec, "containers")]:
        for name, wanted in (("image", str), ("args", list), ("securityContext", dict)):
            _check(container.get(name, wanted()), wanted, _below(at, name))
        _check((container.get("securityContext") or {}).get("capabilities", {}), dict, f"{at}.securityContext.capabilities")
    for at, volume in _items(spec, "volumes"):
        for name, source in volume.items():
            _check(source, str if name == "name" else dict, _below(at, name))
        for source in _list_of(volume.get("projected", {}).get("sources"), f"{at}.projected.sources"):
            _check(source, dict, f"{at}.projected.sources")


def _items(spec: Any, name: str) -> list[tuple[str, Object]]:
    items = spec.get(name, [])
    _check_items(items, "name", f"spec.{name}")
    return [(f"spec.{name}[{item['name']}]", item) for item in items]


def _list_of(value: Any, at: str) -> list[Any]:
    _check(value or [], list, at)
    return value or []


def _check(value: Any, wanted: type, at: str) -> None:
    if not isinstance(value, wanted):
        raise BadPatch(f"{at} must be {_NAMES[wanted]}")


_NAMES: Mapping[type, str] = {dict: "an object", list: "a list", str: "a text"}


# --- what is new --------------------------------------------------------------------------------------------------------


def _new(value: Any) -> Any:
    """A value that nothing was there for: without nulls, and without what directives have nothing to work on."""
    if isinstance(value, dict):
        return {key: _new(each) for key, each in value.items()
                if each is not None and not key.startswith("$") and not (isinstance(each, dict) and PATCH in each)}
    if isinstance(value, list):
        return [_new(each) for each in value if not (isinstance(each, dict) and PATCH in each)]
    return value


def _plain(value: Any, at: str) -> Any:
    """A value that is taken as it is: the API server would keep directives in it as fields."""
    if isinstance(value, dict):
        if PATCH in value:
            raise BadPatch(f"{at}: {PATCH} has nothing to work on")
        return {key: _plain(each, _below(at, key)) for key, each in value.items()
                if each is not None and not key.startswith("$")}
    return [_plain(each, at) for each in value] if isinstance(value, list) else value


def _scalars(values: Any, at: str) -> list[Any]:
    if not isinstance(values, list) or any(isinstance(value, dict | list) for value in values):
        raise BadPatch(f"{at} must be a list of plain values")
    return values


def _below(at: str, key: str) -> str:
    return f"{at}.{key}" if at else key
