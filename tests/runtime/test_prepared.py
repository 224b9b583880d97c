from lmc.runtime.prepared import prepare
from tests.backend.programs import JUDGE, TOOLS, plan_of


def test_literal_contexts_and_their_prefixes_are_shared_by_the_batch():
    prepared = prepare(plan_of(JUDGE))
    assert prepared.shared.instructions == (0, 1, 2)
    assert set(prepared.own.instructions) == set(range(3, 13))
    assert prepared.own.waits[3] == 0
    assert prepared.whole.waits[3] == 1
    assert prepared.dependents[4] == (5, 6, 8)


def test_what_uses_an_input_a_model_or_the_host_is_not_shared():
    prepared = prepare(plan_of(TOOLS))
    assert [prepared.ops[index].NAME for index in prepared.shared.instructions] == ["lm.context"]


def test_calls_know_the_prefix_they_use():
    prepared = prepare(plan_of(JUDGE))
    ids = {getattr(op, "id", None): index for index, op in enumerate(prepared.ops)}
    users = ["judge/on_topic", "judge/fork/0/j", "judge/fork/1/j", "judge/verdict"]
    assert prepared.prefill_of == {ids[name]: 4 for name in users}
    assert prepared.prefill_users == {4: 4}
    assert prepared.prefill_ids == {2: "judge/prefill#0", 4: "judge/prefill#1"}


def test_preparing_is_linear():
    def waits(count: int) -> int:
        lines = "\n".join(
            f'%p{n + 1} = lm.prefill %c{n} : !ctx\n%c{n + 1}, %t{n} = lm.gen %p{n + 1} {{id = "f/g{n}"}} : !ctx, !text'
            for n in range(count)
        )
        text = f"module @f {{ func @f(%x: !text) {{ %0 = lm.context : !ctx\n%c0 = lm.extend %0 [%x] : !ctx\n{lines}\n"
        prepared = prepare(plan_of(text + f"lm.return %c{count} () }} }}"))
        assert set(prepared.prefill_users.values()) <= {1, 2}
        return sum(map(len, prepared.dependents)) + len(prepared.prefill_of)

    assert waits(200) < 2.1 * waits(100)
