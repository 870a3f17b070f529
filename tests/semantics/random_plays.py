#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""random_plays.py SEED COUNT - prints random scenarios {Name,Steps,none}, in the words of play.c.

random_test.sh plays them on Erlang and here. Half of them have two sessions. What OTP 25 does otherwise than later releases, or in no
fixed order, is left out (docs/semantics.md, Scenarios): return_to beside exceptions, a specification that takes the last flags of a process
and gives it others, messages to a process that runs.
"""
import random
import sys

FLAGS = ["call", "send", "'receive'", "procs", "arity", "silent", "timestamp", "monotonic_timestamp", "strict_monotonic_timestamp"]
ACTIONS = ["{return_trace}", "{message,false}", "{message,x}", "{message,{self}}", "{message,{caller}}", "{message,'$1'}",
           "{message,{is_seq_trace}}", "{silent,true}", "{silent,false}"]
FLAG_ACTIONS = ["{enable_trace,send}", "{disable_trace,call}", "{trace,[],[arity]}", "{trace,[send],[procs]}", "{enable_trace,'@q',send}"]
GUARDS = ["{'>','$1',1}", "{'<','$1',2}", "{'=:=','$1',2}", "{is_integer,'$1'}", "true", "false", "{'not',{'==','$1',1}}", "{is_seq_trace}"]
SEND_PATTERNS = ["true", "false", "[{['_',m1],[],[]}]", "[{['@q','_'],[],[{message,hit}]}]",
                 "[{['_','$1'],[{is_atom,'$1'}],[{message,'$1'},{enable_trace,procs}]}]"]
RECV_PATTERNS = ["true", "false", "[{['_','_',m1],[],[]}]", "[{['_','$1','_'],[{is_pid,'$1'}],[{message,'$1'}]}]"]
QUERIES = ["{info,'@p',flags}", "{info,'@q',flags}", "{info,'@p',tracer}", "{info,{pl,a,2},match_spec}", "all_info"]


class Play:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.has_exceptions = self.chance(.5)
        self.has_two = self.chance(.5)

    def of(self, values):
        return self.random.choice(values)

    def chance(self, chance):
        return self.random.random() < chance

    # ---- operations of a process ----

    def body(self, depth):
        steps = [self.operation(depth) for _ in range(self.random.randrange(3))]
        if depth > 0 and self.chance(.3):
            steps.append(self.call(depth - 1))
        elif self.has_exceptions and self.chance(.15):
            steps.append(self.of(["{error,r1}", "{error,r2}", "{exit,r}", "{throw,r}"]))
        else:
            steps.append("{ret,%d}" % self.random.randrange(9))
        return "[%s]" % ",".join(steps)

    def call(self, depth, kinds="lx"):
        return "{%s,%s,%d,%s}" % (self.of(kinds), self.of("abc"), self.random.randrange(4), self.body(depth))

    def operation(self, depth):
        if depth > 0 and self.chance(.6):
            return ("{t,%s}" if self.chance(.7) else "%s") % self.call(depth - 1)
        return self.of(["{send,'@q',m0}", "{send,'@q',m1}", "{send,n1,x}", "{recv,no,1}", "none"])

    def run(self):
        operations = [self.operation(0) if self.chance(.4) else "{t,%s}" % self.call(3, "x") for _ in range(self.random.randrange(1, 4))]
        return "{run,p,[%s]}" % ",".join(operations)

    # ---- settings and queries ----

    def spec(self):
        if self.chance(.3):
            return "true"
        clauses = []
        for _ in range(self.random.randrange(1, 3)):
            actions = self.random.sample(ACTIONS + (["{exception_trace}"] if self.has_exceptions else []), self.random.randrange(3))
            if self.chance(.3):
                actions.append(self.of(FLAG_ACTIONS))
            guard = self.of(GUARDS) if self.chance(.5) else ""
            clauses.append("{['$1','_'],[%s],[%s]}" % (guard, ",".join(actions)))
        return "[%s]" % ",".join(clauses)

    def flags(self):
        return ",".join(self.random.sample(FLAGS + ([] if self.has_exceptions else ["return_to"]), self.random.randrange(1, 5)))

    def function(self):
        mfa = self.of(["{pl,a,2}", "{pl,b,2}", "{pl,c,2}", "{pl,'_','_'}"])
        kinds = self.of(["local", "local", "local", "global", "meta", "call_count", "local,call_count", "call_time"])
        if self.chance(.15):
            spec = "false"
        elif kinds == "meta":
            spec = self.of(["true", "[{'_',[],[{message,y}]}]", "[{['$1','_'],[{'>','$1',1}],[{return_trace}]}]"])
        else:
            spec = "true" if "call_" in kinds else self.spec()
        return "{function,%s,%s,[%s]}" % (mfa, spec, kinds)

    def setting(self):
        kind = self.random.random()
        if kind < .35:
            return "{process,'@%s',%s,[%s]}" % (self.of("ppq"), self.of(["true", "true", "false"]), self.flags())
        if kind < .8:
            return self.function()
        return self.of(["{send_pattern,%s}" % self.of(SEND_PATTERNS), "{recv_pattern,%s}" % self.of(RECV_PATTERNS), self.of(QUERIES)])

    def both(self, steps):
        return steps + (["{in,s2,[%s]}" % ",".join(steps)] if self.has_two else [])

    def steps(self):
        steps = (["{session,s2,t2}"] if self.has_two else []) + ["{tracee,p}", "{tracee,q}"] + self.both(["{process,'@p',true,[call]}"])
        for _ in range(self.random.randrange(2, 5)):
            for _ in range(self.random.randrange(1, 4)):
                setting = self.setting()
                steps.append("{in,s2,[%s]}" % setting if self.has_two and self.chance(.5) else setting)
            steps.append(self.run())
            if self.chance(.4):
                steps += self.both(["ev"])
        return ",".join(steps + self.both(["ev", "{info,'@p',flags}", "all_info"]))


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        print("{r%d,[%s],none}." % (number, Play(f"{seed}.{number}").steps()))


main()
