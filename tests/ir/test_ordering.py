from lmc.ir.analysis.ordering import objects_of, waits_of
from lmc.ir.dialects.region_ops import LoopOp
from lmc.ir.text.parser import parse, parse_verified
from tests.backend.programs import JUDGE, TOOLS
from tests.ir.breaks import BREAK


def test_branches_of_a_fork_wait_for_their_context_only():
    ops = parse(JUDGE).main.body.ops
    waits = waits_of(ops)
    names = {getattr(op, "id", None): index for index, op in enumerate(ops)}
    assert waits[names["judge/fork/0/j"]] == (6,)
    assert waits[names["judge/fork/1/j"]] == (8,)


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


REGIONS = """
module @f {
  host @get = "p:get" sha256 "0" pure
  host @look = "p:look" sha256 "0" reads
  host @write = "p:write" sha256 "0" writes
  func @f(%flag: !bool, %x: !text, %xs: !list<!text>) {
    %c = lm.context : !ctx
    OPS
    lm.return %c
  }
}
"""


def waits(ops: str) -> list[tuple[int, ...]]:
    """Return what the ops wait for; the first is the context, at 0."""
    return waits_of(parse_verified(REGIONS.replace("OPS", ops)).main.body.ops)


def arm(inside: str) -> str:
    return f"cf.cond %flag ^then() {{ {inside} cf.yield {{}} }} ^otherwise() {{ cf.yield {{}} }} "


WRITE = '%w{0} = host.call @write ("a") {{id = "w{0}"}} : !none '
LOOK = '%l{0} = host.call @look ("a") {{declared = "reads", id = "l{0}"}} : !text '
GEN = '%d{0}, %t{0} = lm.gen %c {{id = "g{0}"}} : !ctx, !text '


def test_what_has_an_id_waits_for_an_op_that_may_leave():
    """Its text would be reported by a run that ended before it."""
    leaving = "cf.cond %flag ^then() { " + BREAK + " } ^otherwise() { cf.yield {} } "
    forced = '%d, %t = lm.gen %c {constraint = @k, forced = [1], id = "g", max_tokens = 1} : !ctx, !text '
    text = REGIONS.replace("  host @get", '  constraint @k = regex "a"\n  host @get')

    def last(ops: str) -> tuple[int, ...]:
        return waits_of(parse_verified(text.replace("OPS", ops)).main.body.ops)[2]

    assert last(leaving + forced) == (0, 1)
    assert last(leaving + arm(forced)) == (0, 1)
    assert last(leaving + '%e = lm.extend %c ["a"] : !ctx ') == (0,)


def test_an_op_with_regions_waits_for_what_they_use():
    assert waits("%y = text.concat [%x] : !text " + arm("%z = text.concat [%y] : !text "))[2] == (1,)
    assert waits("%y = text.concat [%x] : !text " + arm(arm("%z = text.concat [%y] : !text ")))[2] == (1,)


def test_an_op_with_regions_is_ordered_by_all_they_do():
    assert waits(WRITE.format(1) + arm(LOOK.format(2)) + LOOK.format(3) + WRITE.format(4))[2:5] == [
        (1,),
        (1,),
        (1, 2, 3),
    ]
    assert waits(LOOK.format(1) + arm(arm(WRITE.format(2))) + LOOK.format(3))[2:4] == [(1,), (2,)]
    assert waits(arm("%n = py.call int (%x) : !int ") + WRITE.format(1))[2] == (1,)
    assert waits(arm(GEN.format(1)) + arm(GEN.format(2)) + WRITE.format(3))[1:4] == [(0,), (0,), (1, 2)]
    assert waits(WRITE.format(1) + arm('py.assume %x {expected = "a"} '))[2] == ()


GET = '%o = host.call @get {declared = "pure", id = "o"} : !list<!text> '


def test_looking_into_an_object_in_a_region_counts_as_a_read():
    look = '%y = py.call contains (%o, "a") : !bool '
    assert waits(GET + WRITE.format(1) + arm(look))[3] == (1, 2)
    assert waits(WRITE.format(1) + arm(GET + look))[2] == (1,)
    elements = "cf.map (%o) ^body(%i: !int, %e: !text) { cf.yield {} } "
    assert waits(GET + WRITE.format(1) + elements)[3] == (1, 2)


def test_objects_are_followed_into_regions_and_out_of_them():
    body = parse_verified(
        REGIONS.replace(
            "OPS",
            GET + "%r, %s = cf.cond %flag : !list<!text>, !text ^then() { cf.yield (%o, %x) } "
            "^otherwise() { cf.yield (%xs, %x) } "
            "%q = cf.loop (%r) : !list<!text> ^condition(%a: !list<!text>) { cf.condition %flag (%a) } "
            "^body(%b: !list<!text>) { %k = py.call list_from (%b) : !list<!text> cf.yield (%k) } "
            "%n = cf.map (%xs) : !list<!text> ^body(%i: !int, %e: !text) { cf.yield (%e) } ",
        )
    ).main.body
    assert {value.name for value in objects_of(body.ops).shared} == {"o", "r", "a", "b", "k", "q"}
    loop = body.ops[3]
    assert isinstance(loop, LoopOp)
    write, look = WRITE.format(1), '%y = py.call contains (%b, "a") : !bool '
    inside = parse_verified(
        REGIONS.replace(
            "OPS",
            GET + "%r = cf.loop (%o) : !list<!text> ^condition(%a: !list<!text>) { cf.condition %flag (%a) } "
            f"^body(%b: !list<!text>) {{ {write} {look} cf.yield (%b) }} ",
        )
    ).main.body
    region = inside.ops[2].regions[1]
    assert waits_of(region.ops, objects_of(inside.ops))[1] == (0,)
    assert waits_of(region.ops)[1] == ()


def test_what_comes_after_a_return_in_a_region_waits_for_it_where_it_could_be_seen():
    leave = "cf.cond %flag ^then() { lm.return %c } ^otherwise() { cf.yield {} } "
    pure = "%y = text.concat [%x] : !text "
    found = waits(leave + pure + GEN.format(1) + LOOK.format(2) + "%n = py.call int (%x) : !int ")
    assert found[1:] == [(0,), (), (0, 1), (1,), (1,), (0, 1)]
    assert waits(arm(leave) + GEN.format(1))[2] == (0, 1)


NEW = "%m = py.local dict () : !any "
PUT = '%p{0} = py.local setitem (%m, "a", {0}) : !none '
COUNT = "%k{0} = py.call len (%m) : !int "


def test_ops_on_objects_keep_their_order_among_themselves_and_not_with_tools():
    found = waits(NEW + PUT.format(1) + WRITE.format(2) + PUT.format(3) + LOOK.format(4) + GEN.format(5))
    assert found[1:-1] == [(), (1,), (2,), (1, 2), (3,), (0,)]


def test_what_looks_into_an_object_keeps_its_place_between_its_changes():
    found = waits(NEW + COUNT.format(1) + PUT.format(2) + COUNT.format(3) + "%y = text.concat [%x] : !text ")
    assert found[1:-1] == [(), (1,), (1, 2), (1, 3), ()]


def test_every_value_that_may_hold_an_object_is_one():
    hold = "%h = py.call tuple (%m, %x) : !list<!any> %g = py.call getitem (%h, 0) : !any "
    look = "%e = py.call eq (%g, %x) : !bool "
    assert waits(NEW + hold + PUT.format(1) + look)[4:6] == [(1, 2, 3), (3, 4)]
    change = '%p1 = py.local setitem (%g, "a", 1) : !none '
    assert waits(NEW + hold + change + COUNT.format(2))[5] == (1, 4)


def test_a_tool_that_gets_an_object_has_it_as_it_is_then():
    hand = '%w{0} = host.call @{1} (%m) {{{2}id = "w{0}"}} : !none '
    reads, writes = hand.format(1, "look", 'declared = "reads", '), hand.format(1, "write", "")
    assert waits(NEW + PUT.format(0) + reads + PUT.format(2) + COUNT.format(3))[3:] == [(1, 2), (1, 2, 3), (1, 4), (0,)]
    assert waits(NEW + writes + COUNT.format(3) + PUT.format(4))[2:5] == [(1,), (1, 2), (1, 2, 3)]


def test_regions_that_change_objects_keep_their_order_with_those_ops():
    assert waits(NEW + arm(PUT.format(1)) + COUNT.format(2) + arm(arm(COUNT.format(3))) + PUT.format(4))[2:6] == [
        (1,),
        (1, 2),
        (1, 2),
        (1, 2, 3, 4),
    ]
    assert waits(arm(NEW + PUT.format(1)) + arm(GEN.format(2)) + "%m2 = py.local list () : !any ")[1:4] == [
        (),
        (0,),
        (1,),
    ]


def test_in_a_body_whose_exceptions_are_caught_objects_wait_for_what_may_raise():
    caught = "%ok, %error = cf.try () : !bool, !any ^body() {{ {0} cf.yield {{}} }} "
    raising = "%{0} = py.call int (%x) : !int "
    body = parse_verified(
        REGIONS.replace(
            "OPS", NEW + caught.format(raising.format("n") + PUT.format(1)) + raising.format("q") + PUT.format(2)
        )
    ).main.body
    objects = objects_of(body.ops)
    assert waits_of(body.ops[2].regions[0].ops, objects)[1] == (0,)
    assert waits_of(body.ops, objects)[4] == (1, 2)
