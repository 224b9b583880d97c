from lmc.backend.waves import waves
from lmc.ir.ordering import waits_of
from lmc.ir.parser import parse
from tests.backend.programs import JUDGE, TOOLS


def test_branches_of_a_fork_wait_for_their_context_only():
    ops = parse(JUDGE).main.body.ops
    waits = waits_of(ops)
    names = {getattr(op, "id", None): index for index, op in enumerate(ops)}
    assert waits[names["judge/fork/0/j"]] == (6,)
    assert waits[names["judge/fork/1/j"]] == (8,)
    assert waves(ops, waits)[names["judge/on_topic"]] == 0
    assert waves(ops, waits)[names["judge/fork/1/j"]] == 0
    assert waves(ops, waits)[names["judge/verdict"]] == 1


def test_a_write_waits_for_all_that_may_raise_or_read_before_it():
    ops = parse(TOOLS).main.body.ops
    waits = waits_of(ops)
    calls = [index for index, op in enumerate(ops) if op.NAME == "host.call"]
    log, look, log_again = calls
    assert waits[log] == (2, 3)  # the assume and the generation
    assert waits[look] == (log,)  # a read: the last write
    assert waits[log_again] == (log, look, 6, 7)  # the write, the read, the samples, the join of them


def test_an_assume_waits_for_nothing_but_its_value():
    text = """
    module @f {
      host @write = "p:write" sha256 "0" writes
      func @f(%n: !int) {
        %0 = lm.context : !ctx
        %1 = host.call @write (%n) {id = "f/write"} : !any
        py.assume %n {expected = 1}
        lm.return %0 ()
      }
    }
    """
    assert waits_of(parse(text).main.body.ops)[2] == ()


def test_a_wave_that_a_pass_has_set_is_kept():
    text = """
    module @f {
      func @f() {
        %0 = lm.context : !ctx
        %1, %a = lm.gen %0 {id = "f/a", wave = 2} : !ctx, !text
        %2, %b = lm.gen %1 {id = "f/b"} : !ctx, !text
        lm.return %2 ()
      }
    }
    """
    ops = parse(text).main.body.ops
    assert waves(ops, waits_of(ops)) == [0, 2, 3, 4]


def test_edges_are_linear_in_ops():
    body = "\n".join(
        f'%c{i}, %t{i} = lm.gen %0 {{id = "f/g{i}"}} : !ctx, !text\n'
        f'%r{i} = host.call @write (%t{i}) {{id = "f/w{i}"}} : !any'
        for i in range(300)
    )
    text = f"""module @f {{ host @write = "p:write" sha256 "0" writes
    func @f() {{ %0 = lm.context : !ctx
    {body}
    lm.return %0 () }} }}"""
    ops = parse(text).main.body.ops
    assert sum(map(len, waits_of(ops))) <= 4 * len(ops)


def test_what_looks_into_a_list_that_a_host_gave_keeps_its_place_among_writes():
    text = """
    module @f {
      host @get = "p:get" sha256 "0" writes
      host @change = "p:change" sha256 "0" writes
      func @f() {
        %0 = lm.context : !ctx
        %1 = host.call @get () {id = "f/get"} : !list<!text>
        %2 = py.call list_from (%1) : !list<!text>
        %3 = py.call contains (%2, "a") : !bool
        %4 = host.call @change () {id = "f/change"} : !any
        %5 = py.call contains (%2, "a") : !bool
        %6 = py.call contains (["a"], "a") : !bool
        lm.return %0 ()
      }
    }
    """
    waits = waits_of(parse(text).main.body.ops)
    assert waits[4] == (1, 2, 3)
    assert waits[5] == (2, 4)
    assert waits[6] == ()
