#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    Names of C++ and of both manglings of Rust are readable in every view, without hashes and without suffixes of link-time
#         optimization, and select their functions, in programs with and without a demangler of their own.
# Method  C functions with such linkage names, as rustc and clang wrote them; where there is a rustc, a program of it in both manglings.
build=$1
. "$(dirname "$0")/lib.sh"

cat >names.c <<'C'
#define NAMED(f, name)                               \
	__attribute__((noinline)) int f(int x) __asm__(name); \
	int f(int x)                                 \
	{                                            \
		__asm__ volatile("" : "+r"(x));      \
		return x * 3 + (x >> 2);             \
	}
NAMED(gen, "_RINvNtCsfq2Zq5gqAK1_2v01m3genmEB4_")
NAMED(fib, "_ZN1a3fib17h8672557337e2da61E")
NAMED(area, "_ZN3geo4area17h0123456789abcdefE.llvm.2796123456789")
NAMED(move, "_ZN3geo5Point4moveEv.llvm.42")
NAMED(local, "local.llvm.7071")
NAMED(one, "_ZN1a3two17h8672557337e2da61E")
NAMED(two, "_ZN1a3two17h9672557337e2da62E")
int main(void)
{
	return gen(1) + fib(2) + area(3) + move(4) + local(4) + one(5) + two(6) == 7;
}
C
gcc -O1 -o plain names.c && g++ -O1 -x c names.c -x none -o with -Wl,--no-as-needed -lstdc++ || fail "gcc"
for program in plain with; do
	expect 0 "$tw" functions -t "$program:_" ./$program
	for name in 'v0::m::gen::<u32>' a::fib geo::area 'geo::Point::move()' local; do
		grep -qxF "entry  $program:$name" out || fail "$program: no $name among the functions: $(cat out)"
	done
	# Two that differ in the hash alone are told apart by their linkage names.
	grep -qxF "entry  $program:a::two [_ZN1a3two17h8672557337e2da61E]" out || fail "$program: no a::two"
	# selects NAME PATTERN: one call, of that function
	selects() {
		expect 0 "$tw" record --force -q -o s.tw -t "$program:$2" -- ./$program
		expect 0 "$tw" print s.tw
		[ "$(wc -l <out)" = 1 ] && grep -q -F "call $program:$1" out || fail "$program: -t '$2' selects: $(cat out)"
	}
	selects 'v0::m::gen::<u32>' 'v0::m::gen::<u32>'
	selects 'v0::m::gen::<u32>' '*u32*'
	selects a::fib a::fib
	selects geo::area geo::area
	selects 'geo::Point::move()' geo::Point::move
	selects a::two 'a::two [_ZN1a3two17h9672557337e2da62E]'
	expect 0 "$tw" record --force -q --returns -o s.tw -t "$program:_" -- ./$program
	expect 0 "$tw" report --json -n 0 s.tw
	is "$(json 'sorted(f["function"] for f in d["by_function"])')" \
		"['a::fib', 'a::two', 'a::two', 'geo::Point::move()', 'geo::area', 'local', 'main', 'v0::m::gen::<u32>']" "JSON of $program"
	expect 0 "$tw" flame --folded s.tw
	shows "^$program:main;$program:v0::m::gen::<u32> "
done

if rustc --version >/dev/null 2>&1; then
	cat >own.rs <<'R'
mod bank {
    pub struct Account(pub u64);
    impl Account {
        #[inline(never)]
        pub fn deposit(&mut self, sum: u64) -> u64 {
            self.0 = self.0 * 3 + sum;
            unsafe { std::ptr::read_volatile(&self.0) }
        }
    }
}
fn main() {
    let mut account = bank::Account(std::env::args().count() as u64);
    std::process::exit((account.deposit(7) == 0) as i32)
}
R
	for mangling in legacy v0; do
		options=()
		[ $mangling = legacy ] || options=(-C symbol-mangling-version=v0)
		rustc -O "${options[@]}" -o own own.rs 2>err || fail "rustc $mangling"
		expect 0 "$tw" record --force -q -o own.tw -t 'own:*Account*deposit' -- ./own
		expect 0 "$tw" report own.tw
		grep -qE 'own:(<?own::)?bank::Account>?::deposit$' out || fail "$mangling: $(cat out)"
	done
fi
# What link-time optimization has renamed has the arguments that its debug information says; versions with other arguments have none.
cat >renamed.c <<'C'
__attribute__((noinline, noipa)) int renamed(int size, const char *name) { volatile int k = size; return k * 3 + name[0]; }
__attribute__((noinline, noipa)) int special(int size, const char *name) { volatile int k = size; return k * 5 + name[0]; }
int main(void) { return renamed(7, "users") + special(8, "groups") == 0; }
C
gcc -g -O1 -c renamed.c && objcopy --redefine-sym renamed=renamed.llvm.12768 --redefine-sym special=special.isra.0 renamed.o && gcc -o renamed renamed.o || fail "gcc"
expect 0 "$tw" record --force -q --args -o r.tw -t 'renamed:{renamed,special}' --allow-nothing -- ./renamed
expect 0 "$tw" print r.tw
shows 'call renamed:renamed/2 (size = 7, name = "users")'
shows 'call renamed:special.isra.0 (0x8, '
exit 0
