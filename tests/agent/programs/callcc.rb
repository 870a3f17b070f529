# SPDX-License-Identifier: Apache-2.0
# Continuations that are gone back to out of blocks, from other depths of the stack.
$rounds = 0
from = callcc { |k| k }
[3, 1, 2].sort_by { |x| "abc".sub(/b/) { |m| m * x }.size }.each { |x| callcc { |k| $inner = k } if x == 2 }
$rounds += 1
puts $rounds
from.call(from) if $rounds < 10
[1].each { |x| [x].map { |y| $inner.call } } if $rounds < 40
fibers = (1..5).map { |i| Fiber.new { 9.times { |j| Fiber.yield i * j }; 0 } }
puts (1..10).sum { fibers.sum(&:resume) }
