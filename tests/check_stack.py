#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_stack.py [--self-test] [--limit BYTES] AGENT - does a traced call take at most 512 bytes of the program's stack?

AGENT is libtracewheel-agent.so of a release build.  `objdump -d` shows how many bytes of stack each of its functions takes, at each
of its calls and at most, also below the stack pointer (the red zone).  The deepest path of calls is sought from each of ROOTS, where
the stub of a traced function enters.  What is not followed is in CUTS, with the reason.

Mistakes are: a path that is deeper than the limit; recursion; a vector register, a call through a pointer, of a function of libc, or a
change of the stack pointer, that no table knows; a row of a table that no path meets.

--self-test: a limit of 8 bytes less than the deepest path has, and each cut left out, must be noticed.
"""
import argparse
import re
import subprocess
import sys

# Where the stubs enter: the bytes that are in use below the function's return address by then, and allowed beyond the limit.
ROOTS = {
    "tw_sled_entry": (24, 0),  # two words and a return address: breakpoints/entry_stub.c, sled.c
    "trampoline_x86_64.S:slot_entry": (0, 0),
    "tw_return_stub": (-8, 0),  # the return address is popped by then
    "tw_return_stub_catching": (-8, 0),
    "tw_site_entry": (128 + 32, 128 + 256),  # the red zone, three words and a return address; SITE_MORE_BYTES
}

POINTERS = {
    "tw_sled_entry": ["tw_bp_whole_sled", "tw_hit_bare_sled"],
    "trampoline_x86_64.S:slot_entry": ["tw_bp_whole_slot", "tw_hit_bare_slot"],
    "tw_bp_whole_sled": ["native.c:hit_checked", "tw_native_hit"],
    "tw_bp_whole_slot": ["native.c:hit_checked", "tw_native_hit"],
    "tw_hit_bare_slot": [],  # on to the function
    "tw_return_stub": ["native.c:return_checked", "tw_native_return"],
    "tw_return_stub_catching": ["native.c:return_checked", "tw_native_return"],
    "tw_site_entry": ["native.c:site_checked", "tw_site_hit"],
    "run.c:go_on_raw": ["special.c:keep_vectors"],
    "run.c:run_strings": ["special.c:is_string"],
    "tw_own_stack_try": [],  # called from such a stack
}

# Functions of libc, with the bytes that they take beside their return address.
LIBC = {
    "pthread_setcancelstate": 8,
}

# Functions, or calls of the second by the first, that are not followed.
SEVERAL = "Several sessions want the call, or one more than the command asks for: decision 0036."
OTHER_STACK = "A thread that may make no system call, and a second without a free stack: decision 0036."
CUTS = {
    "tw_native_hit_generally": SEVERAL,
    "native.c:return_generally": SEVERAL,
    "longer.c:enter_behind_others > tw_native_hit_whole": SEVERAL,
    "special.c:keep_vectors > tw_patch_call_keeping_vectors": SEVERAL,
    "tw_own_stack_try > tw_patch_call_keeping_vectors": OTHER_STACK,
    "tw_own_stack_call > tw_patch_call_keeping_vectors": OTHER_STACK,
    "thread_ring.c:work > tw_patch_call_keeping_vectors": OTHER_STACK,
    "tw_allocator_call > tw_patch_call_keeping_vectors": "pthread_create() that passes flags on: decision 0036.",
    "tw_clock_monotonic_ns": "A processor whose time-stamp counter is of no use: decision 0036.",
    "run.c:go_on_raw > run.c:go_on_there": "Runs in hits have keep_vectors: tw_hit_prepare_run().",
    "tw_arg_is_string > getpid@plt": "tw_arg_init() has been called.",
}

# A path meets them once.
ONCE = {
    "native.c:hit_unready": "The thread is ready then.",
}

# Their jumps through pointers lead to labels of their own.
LABELS = {"tw_match_run_raw", "tw_match_run_briefly", "run.c:run_strings"}

# They read vector registers, and change none.
VECTORS = {"tw_arg_read_vectors", "tw_arg_read_result", "tw_arg_capture_registers"}

ENDS = {"tw_assert_failed", "abort@plt"}  # no call of these returns


class Mistake(Exception):
    pass


class Code:
    """The instructions of a library by address, and the names of its functions: static ones have their file's before them."""

    def __init__(self, library):
        def lines(option):
            command = ["objdump", option, "--no-show-raw-insn", library]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()

        self.names, self.instructions = {}, {}
        before = None
        for line in lines("-d"):
            if found := re.match(r" *([0-9a-f]+):\t(.+)$", line):
                address = int(found[1], 16)
                self.instructions[address] = [re.sub(r"^((lock|repn?z?|notrack|bnd|data16|cs) )+", "", found[2]), None]
                if before is not None:
                    self.instructions[before][1] = address
                before = address
            elif found := re.match(r"([0-9a-f]+) <(.+)>:$", line):
                self.names[int(found[1], 16)] = found[2]
        file = ""
        for line in lines("-t"):
            if found := re.search(r" df \*ABS\*\s+\S+ *(\S*)$", line):
                file = found[1].removesuffix(".o")
            elif (found := re.match(r"([0-9a-f]+) l .* (\S+)$", line)) and file:
                address = int(found[1], 16)
                if self.names.get(address) == found[2]:
                    self.names[address] = f"{file}:{found[2]}"

    def is_begin(self, address):
        return address in self.names and ".cold" not in self.names[address]

    def name(self, address):
        """Without what the compiler appends to its variants of a function."""
        return re.sub(r"\.(isra|constprop|part|cold).*", "", self.names[address])

    def named(self, name):
        return [address for address in self.names if self.is_begin(address) and self.name(address) == name]


class Function:
    """What a function takes of the stack below its return address: at most, and at each call of and jump to another one."""

    def __init__(self, code, begin):
        self.code, self.begin, self.name = code, begin, code.name(begin)
        self.most, self.calls, self.pointers = 0, set(), []
        self.seen, self.work = {}, [(begin, 0, None)]
        self.has_vectors = False
        self.follow_all()

    def mistake(self, at, what):
        raise Mistake(f"{self.name}: {what}: {at:x}: {self.code.instructions[at][0]}")

    def follow_all(self):
        while self.work:
            self.follow(*self.work.pop())

    def follow(self, at, depth, frame):
        """From an instruction on; @frame: the depth where %rbp points, None: elsewhere."""
        while at not in self.seen:
            self.seen[at] = depth, frame
            text, after = self.code.instructions[at]
            self.has_vectors |= bool(re.match(r"f|\S+ [^#]*%([xyz]?mm|st\b)", text))
            for distance, register in re.findall(r"-0x([0-9a-f]+)\(%r([sb]p)", text):
                base = depth if register == "sp" else frame
                if base is not None and not text.startswith("nop"):
                    self.most = max(self.most, base + int(distance, 16))
            op = text.split()[0]
            if op in ("ret", "hlt", "ud2"):
                return
            if op == "call" or op[0] == "j":
                is_behind = self.jump(at, op, text, depth, frame)
            else:
                is_behind, depth, frame = self.change(at, op, text, depth, frame)
            self.most = max(self.most, depth)
            if not is_behind:
                return
            at = after
        if self.seen[at] != (depth, frame):
            self.mistake(at, f"{self.seen[at]} or {(depth, frame)} bytes")

    def change(self, at, op, text, depth, frame):
        """Is the stack still the same, the depth, and the frame behind an instruction."""
        if op in ("push", "pushf"):
            return True, depth + 8, frame
        if op in ("pop", "popf"):
            return True, depth - 8, None if text.endswith("%rbp") else frame
        if op == "leave":
            return True, frame - 8, None
        if op in ("cmp", "test") or not text.endswith((",%rsp", ",%rbp")):
            return True, depth, frame
        if text.endswith(",%rbp"):
            return True, depth, depth if re.match(r"mov +%rsp,", text) else None
        if found := re.match(r"(add|sub) +\$(-?0x[0-9a-f]+),", text):
            return True, depth + int(found[2], 16) * (1 if found[1] == "sub" else -1), frame
        if found := re.match(r"lea +(-?0x[0-9a-f]+)\(%r([sb])p\),", text):
            return True, (depth if found[2] == "s" else frame) - int(found[1], 16), frame
        if found := re.match(r"and +\$0xf{14}([0-9a-f]0),", text):
            # The stack is aligned to 8 bytes before.
            return True, depth + 0x100 - int(found[1], 16) - 8, frame
        if re.match(r"mov +%r(?!bp)", text):
            return False, depth, frame
        return self.mistake(at, "changes the stack pointer in an unknown way")

    def jump(self, at, op, text, depth, frame):
        """A call or jump; False: it does not lead to the next instruction."""
        depth += 8 if op == "call" else 0
        self.most = max(self.most, depth)
        if "*" in text:
            if op == "jmp" and (self.name in LABELS or self.is_switch(at)):
                self.follow_labels(at, depth, frame)
            else:
                self.pointers.append((depth, text))
            return op == "call"
        target = int(text.split()[1], 16)
        if op == "call" and self.code.names.get(target) in ENDS:
            return False
        if op == "call" or (self.code.is_begin(target) and target != self.begin):
            self.calls.add((target, depth))
        else:
            self.work.append((target, depth, frame))
        return op != "jmp"

    def is_switch(self, at):
        """Does a jump lead by a table of distances?"""
        near = (self.code.instructions[a][0] for a in range(at - 24, at) if a in self.code.instructions)
        return any(text.startswith("movslq") for text in near)

    def follow_labels(self, at, depth, frame):
        """What of the function is not reached otherwise is reached by this jump."""
        self.follow_all()
        while (at := self.code.instructions[at][1]) and at not in self.code.names:
            if at not in self.seen and not re.match(r"nop|xchg +%ax,%ax|cs nop", self.code.instructions[at][0]):
                self.work.append((at, depth, frame))
                self.follow_all()


class Search:
    """The deepest path of calls from a function."""

    def __init__(self, code, cuts):
        self.code, self.cuts = code, cuts
        self.functions, self.found, self.open, self.met, self.mistakes = {}, {}, [], set(), []

    def mistake(self, what, *names):
        self.mistakes.append(f"{what}: {' > '.join([self.code.name(begin) for begin, _ in self.open] + list(names))}")
        return 0, []

    def deepest(self, begin, once=frozenset()):
        """The bytes below its return address, and the path: names, with the bytes in use where the next one begins."""
        name = self.code.name(begin)
        if name.endswith("@plt"):
            self.met.add(name[:-4])
            if name[:-4] not in LIBC:
                return self.mistake("a function of libc", name)
            return LIBC[name[:-4]], [(name, LIBC[name[:-4]])]
        if name in once:
            return 0, []
        if name in ONCE:
            self.met.add(name)
            once |= {name}
        key = begin, once
        if key in self.open:
            return self.mistake("recursion", name)
        if key not in self.found:
            self.open.append(key)
            try:
                self.found[key] = self.deepest_of(begin, once)
            except Mistake as mistake:
                self.found[key] = self.mistake(str(mistake))
            self.open.pop()
        return self.found[key]

    def deepest_of(self, begin, once):
        if begin not in self.functions:
            self.functions[begin] = Function(self.code, begin)
        function = self.functions[begin]
        self.met |= {function.name} & (LABELS | VECTORS)
        if function.has_vectors and function.name not in VECTORS:
            self.mistake("vector registers")
        best = function.most, [(function.name, function.most)]
        for callee, depth in self.callees(function):
            below, path = self.deepest(callee, once)
            if depth + below > best[0]:
                best = depth + below, [(function.name, depth)] + path
        return best

    def callees(self, function):
        for callee, depth in sorted(function.calls):
            name = self.code.name(callee)
            rows = {name, f"{function.name} > {name}"} & self.cuts.keys()
            self.met |= rows
            if not rows:
                yield callee, depth
        for depth, text in function.pointers:
            self.met.add(function.name)
            if function.name not in POINTERS:
                self.mistake("a call through a pointer", text)
            for name in POINTERS.get(function.name, []):
                for callee in self.code.named(name):
                    yield callee, depth


class Result:
    """What is wrong with a library, and how deep its deepest path is below the limit."""

    def __init__(self, code, cuts, limit):
        search = Search(code, cuts)
        deepest = []
        for root, (before, more) in ROOTS.items():
            for begin in code.named(root):
                below, path = search.deepest(begin)
                deepest.append((limit + more - before - below, limit + more, before, path))
        if not deepest:
            sys.exit("check_stack.py: no function of a stub is there: is it the agent, with its symbols?")
        self.left, most, used, path = min(deepest)
        lines = [f"{most - self.left} of {most} bytes: those in use where each of these begins"]
        for name, own in path:
            lines.append(f"{used:6}  {name}")
            used += own
        self.path = "\n".join(lines)
        rows = set(POINTERS) | set(LIBC) | set(cuts) | set(ONCE) | LABELS | VECTORS
        self.mistakes = search.mistakes + [f"no path meets this row: {row}" for row in sorted(rows - search.met)]
        self.is_good = self.left >= 0 and not self.mistakes


def self_test(code, limit, good):
    """What was not noticed."""
    missed = []
    if Result(code, CUTS, limit - good.left - 8).is_good:
        missed.append("a deeper path than the limit")
    for row in CUTS:
        if Result(code, {name: why for name, why in CUTS.items() if name != row}, limit).is_good:
            missed.append(f"a cut that is left out: {row}")
    return missed


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library")
    parser.add_argument("--limit", type=int, default=512)
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    code = Code(arguments.library)
    result = Result(code, CUTS, arguments.limit)
    print("\n".join([result.path] + result.mistakes))
    if result.left < 0:
        print("A traced call takes more of the program's stack than is promised: docs/hit-path.md, \"The stack\".")
    missed = self_test(code, arguments.limit, result) if arguments.self_test and result.is_good else []
    print("\n".join(f"not noticed: {what}" for what in missed), end="")
    sys.exit(0 if result.is_good and not missed else 1)


if __name__ == "__main__":
    main()
