from lmc.runtime.prepared import prepare
from tests.backend.programs import FLOW, JUDGE, TOOLS, plan_of


def test_literal_contexts_and_their_prefixes_are_shared_by_the_batch():
    prepared = prepare(plan_of(JUDGE))
    assert prepared.shared.instructions == (0, 1, 2)
    assert set(prepared.own.instructions) == set(range(3, 13))
    assert prepared.own.waits[3] == 0
    assert prepared.own.first == (3,)
    assert prepared.main.whole.waits[3] == 1
    assert prepared.main.dependents[4] == (5, 6, 8)


def test_what_uses_an_input_a_model_or_the_host_is_not_shared():
    prepared = prepare(plan_of(TOOLS))
    assert [prepared.main.ops[index].NAME for index in prepared.shared.instructions] == ["lm.context"]


def test_calls_know_the_prefix_they_use():
    prepared = prepare(plan_of(JUDGE)).main
    ids = {getattr(op, "id", None): index for index, op in enumerate(prepared.ops)}
    users = ["judge/on_topic", "judge/fork/0/j", "judge/fork/1/j", "judge/verdict"]
    assert prepared.prefills_of == {ids[name]: (4,) for name in users}
    assert prepared.prefill_users == {2: 1, 4: 4}  # the batch holds the first one
    assert prepared.prefill_ids == {2: "judge/prefill#0", 4: "judge/prefill#1"}


def test_preparing_is_linear():
    def waits(count: int) -> int:
        lines = "\n".join(
            f'%p{n + 1} = lm.prefill %c{n} : !ctx\n%c{n + 1}, %t{n} = lm.gen %p{n + 1} {{id = "f/g{n}"}} : !ctx, !text'
            for n in range(count)
        )
        text = f"module @f {{ func @f(%x: !text) {{ %0 = lm.context : !ctx\n%c0 = lm.extend %0 [%x] : !ctx\n{lines}\n"
        prepared = prepare(plan_of(text + f"lm.return %c{count} () }} }}")).main
        assert set(prepared.prefill_users.values()) <= {1, 2}
        return sum(map(len, prepared.dependents)) + len(prepared.prefills_of)

    assert waits(200) < 2.1 * waits(100)


def test_an_op_with_regions_uses_the_prefixes_that_its_ops_use_and_regions_have_prefixes_of_their_own():
    prepared = prepare(plan_of(FLOW))
    main = prepared.main
    by_name = {op.NAME: index for index, op in enumerate(main.ops)}
    (prefill,) = [index for index, op in enumerate(main.ops) if op.NAME == "lm.prefill"]
    for name in ("lm.select", "cf.map", "cf.loop", "cf.race"):
        assert main.prefills_of[by_name[name]] == (prefill,)
    # The context that the loop gives goes on from the prefix, so what builds on it keeps the prefix too.
    assert main.prefills_of[by_name["lm.gen"]] == (prefill,)
    (body,) = main.bodies[by_name["cf.map"]]
    assert body.prefills_of == {2: (1,), 3: (1,)}
    assert (main.prefill_ids, body.prefill_ids) == ({prefill: "flow/prefill#0"}, {1: "flow/prefill#1"})


def test_calls_of_a_region_are_ranked_among_each_other():
    (body,) = next(iter(prepare(plan_of(FLOW)).main.bodies.values()))
    assert body.whole.first == (0,)
    assert body.ranks == (0, 1, 2, 3, 4, 5, 6)
