#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Goal    A Rust program whose panics pass watched C functions, and are caught and thrown again, answers as untraced,
#         and each call that a panic left ends by {error, rust_panic}. Skipped without a Rust compiler.
build=$1
. "$(dirname "$0")/lib.sh"

if ! rustc --version >/dev/null 2>&1; then
	echo "skipped: there is no rustc"
	exit 77
fi
cat >panics.rs <<'R'
use std::ffi::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

type Compare = extern "C-unwind" fn(*const c_void, *const c_void) -> i32;
extern "C-unwind" {
    fn qsort(base: *mut c_void, count: usize, bytes: usize, compare: Compare);
}

struct Noted<'a>(&'a mut Vec<u32>, u32);
impl Drop for Noted<'_> {
    fn drop(&mut self) {
        self.0.push(self.1);
    }
}

static mut LEFT: i32 = 0;

extern "C-unwind" fn compare(a: *const c_void, b: *const c_void) -> i32 {
    let (a, b) = unsafe { (*(a as *const i32), *(b as *const i32)) };
    unsafe {
        LEFT -= 1;
        if LEFT == 0 {
            panic!("in the middle of qsort");
        }
    }
    a.cmp(&b) as i32
}

#[inline(never)]
fn sort(left: i32, dropped: &mut Vec<u32>) -> i32 {
    let mut numbers = [5, 3, 9, 1, 7];
    let _noted = Noted(dropped, left as u32);
    unsafe {
        LEFT = left;
        qsort(numbers.as_mut_ptr() as *mut c_void, 5, 4, compare);
    }
    numbers[0]
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    let mut dropped = Vec::new();
    let mut caught = 0;
    for round in 0..200 {
        // Every other one panics; some panics go on after they were caught once.
        let left = if round % 2 == 0 { 1 + round % 4 } else { 1000 };
        let end = catch_unwind(AssertUnwindSafe(|| {
            let inner = catch_unwind(AssertUnwindSafe(|| sort(left, &mut dropped)));
            match inner {
                Ok(first) => first,
                Err(panic) => resume_unwind(panic),
            }
        }));
        match end {
            Ok(first) => assert_eq!(first, 1),
            Err(_) => caught += 1,
        }
    }
    let worker = std::thread::spawn(|| {
        let mut dropped = Vec::new();
        sort(2, &mut dropped)
    });
    assert!(worker.join().is_err());
    println!("{} {}", caught, dropped.len());
}
R
# C-unwind was not stable before Rust 1.81, and Debian 12 has 1.63.
RUSTC_BOOTSTRAP=1 rustc -O -A warnings -Z crate-attr='feature(c_unwind)' -o panics panics.rs 2>err || fail "rustc: $(cat err)"
expect 0 ./panics
is "$(cat out)" '100 200' 'untraced'
expect 0 "$tw" record -q --force --global --exceptions -t libc:qsort -o panics.tw -- ./panics
is "$(cat out)" '100 200' 'with exceptions'
expect 0 "$tw" print panics.tw
is "$(grep -c ' call libc:qsort' out)" 201 'calls'
is "$(grep -c ' exception_from libc:qsort.* -> error rust_panic$' out)" 101 'panics'
is "$(grep -c ' return_from libc:qsort' out)" 100 'returns'
expect 0 "$tw" print --format erlang --bare-pids panics.tw
is "$(grep -c "exception_from,{libc,qsort,'_'},{error,rust_panic}}" out)" 101 'Erlang'
# All slots of all objects: Rust's own calls of the unwinder among them.
for how in --exceptions --returns; do
	expect 0 "$tw" record -q --force --global $how --callers all -t '_:_' -o panics.tw -- ./panics
	is "$(cat out)" '100 200' "everything, $how"
done
expect 0 "$tw" print panics.tw
is "$(grep -c ' return_from libc:qsort' out)" 100 'returns, without exceptions'
echo "all as it should be"
