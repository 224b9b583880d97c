"""Modules for tests of backend, runtime and driver: written as `.lmir`, which the parser reads and verifies."""

from lmc.backend.lower import lower
from lmc.backend.plan import Plan
from lmc.ir.engine.target import Target
from lmc.ir.text.parser import parse

JUDGE = r"""
module @judge {
  func @judge(%essay: !text) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0, system ["You grade essays."] : !ctx loc("judge.py":7)
    %2 = lm.prefill %1 {scope = "batch"} : !ctx
    %3 = lm.extend %2, user ["Essay:\n", %essay] : !ctx loc("judge.py":8)
    %4 = lm.prefill %3 : !ctx
    %5, %t, %m = lm.select %4 ["yes", "no"] {id = "judge/on_topic", name = "on_topic"} : !ctx, !text, !any
      loc("judge.py":9)
    %6 = lm.extend %4, user ["Judge its tone."] : !ctx loc("judge.py":11)
    %7, %a = lm.gen %6 {id = "judge/fork/0/j", name = "j", max_tokens = 12} : !ctx, !text loc("judge.py":12)
    %8 = lm.extend %4, user ["Judge its logic."] : !ctx loc("judge.py":11)
    %9, %b = lm.gen %8 {id = "judge/fork/1/j", name = "j", max_tokens = 12, temperature = 1.0} : !ctx, !text
      loc("judge.py":12)
    %10 = lm.extend %5, user ["Views: ", %a, %b] : !ctx loc("judge.py":13)
    %11, %v = lm.gen %10 {id = "judge/verdict", name = "verdict", max_tokens = 8} : !ctx, !text loc("judge.py":14)
    lm.return %11 (%v, %t) {structure = "{\"tuple\":[{\"leaf\":0},{\"leaf\":1}]}"}
  }
}
"""

# Host calls among generations; every literal and type that the JSON has a form of its own for.
TOOLS = r"""
module @tools {
  host @log = "program:log" sha256 "00" writes
  host @look = "program:look" sha256 "01" reads
  func @tools(%item.title: !text, %count: !int, %numbers: !list<!list<!int>>) {
    %0 = lm.context : !ctx
    %1 = lm.extend %0 ["Title: ", %item.title] : !ctx                                        loc("tools.py":3)
    py.assume %count {expected = 3}                                                          loc("tools.py":4)
    %2, %a = lm.gen %1 {id = "tools/a", max_tokens = 4} : !ctx, !text                        loc("tools.py":5)
    %3 = host.call @log (%a, 1.5, inf, [1, none, true]) {id = "tools/log"} : !any             loc("tools.py":6)
    %4 = host.call @look (%numbers) {declared = "reads", id = "tools/look"} : !any            loc("tools.py":7)
    %5 = lm.sample %1 {id = "tools/s", max_tokens = 3, n = 2, temperature = 0.5} : !list<!text> loc("tools.py":8)
    %6 = py.call str.join (", ", %5) : !text                                                 loc("tools.py":9)
    %7 = host.call @log (%6, 12345678901234567890) {id = "tools/log#1"} : !any                loc("tools.py":10)
    %8 = lm.extend %2 ["\ud83d\ude00 é"] : !ctx
    lm.return %8 (%3, %4, %7) (%a) {
      structure = "{\"list\":[{\"leaf\":0},{\"leaf\":1},{\"leaf\":2}]}", variable_names = ["a"]
    }
  }
}
"""


# Every op with regions, in each other too; a return and a break in a region.
FLOW = r"""
module @flow {
  host @look = "program:look" sha256 "01" reads
  host @tell = "program:tell" sha256 "02" writes
  func @flow(%essay: !text, %dims: !list<!text>, %rounds: !int) {
    %c = lm.context : !ctx
    %d = lm.extend %c, user ["Essay:\n", %essay] : !ctx                                          loc("flow.py":3)
    %p = lm.prefill %d : !ctx
    %m, %verdict, %s = lm.select %p ["yes", "no"] {id = "flow/ok"} : !ctx, !text, !any             loc("flow.py":4)
    %ok = py.call eq (%verdict, "yes") : !bool                                                    loc("flow.py":4)
    %views = cf.map (%dims) : !list<!text> ^body(%i: !int, %dim: !text) {
      %v = lm.extend %p, user ["Judge its ", %dim] : !ctx                                         loc("flow.py":6)
      %q = lm.prefill %v : !ctx
      %w, %view = lm.gen %q (%i) {id = "flow/view$/j", max_tokens = 6, name = "j"} : !ctx, !text  loc("flow.py":7)
      %x, %again = lm.gen %q (%i) {id = "flow/view$/k", max_tokens = 3, temperature = 1.0} : !ctx, !text
      %h = host.call @look (%view) {declared = "reads", id = "flow/@look"} : !any                 loc("flow.py":8)
      %both = text.concat [%view, "/", %again] : !text
      cf.yield (%both)
    }                                                                                             loc("flow.py":5)
    %total, %e = cf.loop (0, %p) {limit = 9} : !int, !ctx ^condition(%k: !int, %kc: !ctx) {
      %more = py.call lt (%k, %rounds) : !bool
      cf.condition %more (%k, %kc)
    } ^body(%j: !int, %jc: !ctx) {
      %f, %say = lm.gen %jc (%j) {id = "flow/say*", max_tokens = 4} : !ctx, !text                 loc("flow.py":10)
      %g = cf.cond %ok : !ctx ^then() {
        %t = host.call @tell (%say, %j) {id = "flow/@tell"} : !any                                loc("flow.py":12)
        %u = lm.extend %f, user ["Go on."] : !ctx
        cf.yield (%u)
      } ^otherwise() {
        cf.yield (%f)
      }
      %l = py.call add (%j, 1) : !int
      cf.yield (%l, %g)
    }                                                                                             loc("flow.py":9)
    %won, %best = cf.race (%views) : !bool, !text ^body(%ri: !int, %view2: !text) {
      %rd = lm.extend %p, user [%view2] : !ctx
      %re, %rt = lm.gen %rd (%ri) {id = "flow/race$", max_tokens = 2} : !ctx, !text               loc("flow.py":14)
      %size = py.call len (%view2) : !int
      %good = py.call ge (%size, 12) : !bool
      cf.yield (%good, %view2)
    }
    cf.cond %won ^then() {
      cf.yield {}
    } ^otherwise() {
      cf.cond %ok ^then() {
        lm.return %e (%total) {structure = "{\"leaf\":0}"}                                        loc("flow.py":17)
      } ^otherwise() {
        lm.break {cause = "eval()", record = "{\"cells\":[],\"frames\":[{\"begin\":true}]}"} loc("flow.py":18)
      }
      cf.unreachable
    }
    %n = lm.extend %e, user ["Views:", %best] : !ctx
    %o, %end = lm.gen %n {id = "flow/end", max_tokens = 5} : !ctx, !text                           loc("flow.py":20)
    lm.return %o (%views, %end, %total) (%end) {
      structure = "{\"list\":[{\"leaf\":0},{\"leaf\":1},{\"leaf\":2}]}", variable_names = ["end"]
    }
  }
}
"""


def plan_of(text: str) -> Plan:
    """The plan of `.lmir` text on the toy target."""
    return lower(parse(text), Target.parse("toy"))
