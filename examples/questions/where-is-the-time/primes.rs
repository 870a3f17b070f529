// SPDX-License-Identifier: Apache-2.0
//! Finds primes in two ways, of which one is slow.

#[inline(never)]
fn by_division(limit: u32) -> u32 {
    (2..limit).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0)).count() as u32
}

#[inline(never)]
fn by_sieve(limit: u32) -> u32 {
    let mut is_prime = vec![true; limit as usize];
    let mut count = 0;
    for n in 2..limit as usize {
        if is_prime[n] {
            count += 1;
            (n * n..limit as usize).step_by(n).for_each(|m| is_prime[m] = false);
        }
    }
    count
}

fn main() {
    for limit in [1000, 100000, 300000] {
        assert_eq!(by_division(limit), by_sieve(limit));
    }
}
