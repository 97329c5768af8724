import pytest
import redis

from guardwave.control_plane.core.errors import StoreStartError
from guardwave.control_plane.stores.server.function_library import (
    call,
    is_missing_function,
    libraries,
    load_functions,
)


def test_every_library_is_loaded_once(any_store):
    any_store.function_flush("SYNC")
    assert libraries()
    assert load_functions(any_store)
    assert not load_functions(any_store)


@pytest.mark.parametrize("library", libraries(), ids=lambda library: library.name)
def test_a_library_of_our_name_with_other_content_is_replaced(any_store, library):
    other = (
        f"#!lua name={library.name}\nredis.register_function('gw_other', function() return 1 end)"
    )
    any_store.function_load(other, replace=True)
    assert load_functions(any_store)
    with pytest.raises(redis.ResponseError) as rejected:
        any_store.fcall("gw_other", 0)
    assert is_missing_function(rejected.value)


def test_servers_of_two_versions_share_a_store(any_store):
    load_functions(any_store)
    ours = libraries()[0]
    version = ours.name.partition("_")[0]
    newer = ours.source.replace(version, "v0000000000").replace("return 0", "return 2")
    any_store.function_load(newer)

    assert call(any_store, "gw_lease", keys=["lease:{x}"], arguments=("one", 1000)) == 1
    assert any_store.fcall("v0000000000_gw_lease", 1, "lease:{x}", "two", 1000) == 2
    assert not load_functions(any_store), "nothing of ours was replaced"
    any_store.function_delete(ours.name.replace(version, "v0000000000"))
    any_store.delete("lease:{x}", "lease:{x}:fence")


def test_libraries_of_others_are_left_alone(any_store):
    other = "#!lua name=other\nredis.register_function('other_one', function() return 1 end)"
    any_store.function_load(other, replace=True)
    any_store.function_delete(libraries()[0].name)
    load_functions(any_store)
    assert any_store.fcall("other_one", 0) == 1
    any_store.function_delete("other")


def test_a_flushed_library_comes_back_with_the_next_call(any_store):
    any_store.function_flush("SYNC")
    with pytest.raises(redis.ResponseError) as rejected:
        call(any_store, "gw_never_written")
    assert is_missing_function(rejected.value)
    assert not load_functions(any_store), "the call above loaded it"


def test_a_function_name_of_another_library_is_reported(any_store):
    name = libraries()[0].source.partition("register_function")[2].split("'")[1]
    thief = f"#!lua name=thief\nredis.register_function('{name}', function() return 1 end)"
    any_store.function_flush("SYNC")
    any_store.function_load(thief)
    try:
        with pytest.raises(StoreStartError, match="rejects the function library"):
            load_functions(any_store)
    finally:
        any_store.function_delete("thief")
