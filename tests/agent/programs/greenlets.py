# SPDX-License-Identifier: Apache-2.0
# Greenlets that switch in the middle of C calls, from several depths; some end by an exception thrown into them.
import greenlet, json, re

main = greenlet.getcurrent()


def worker(n):
    total = 0
    for i in range(n):
        total += len(json.dumps(list(range(i % 7))))
        total += len(re.sub('a+', lambda m: main.switch(i) or 'b', 'xaaxa'))
        main.switch(i)
    return total


def sleeper():
    try:
        sorted([3, 1, 2], key=lambda item: main.switch())
    except greenlet.GreenletExit:
        ends.append('exit')
        raise


ends = []
alive = [greenlet.greenlet(worker) for _ in range(5)]
arguments = {g: (20 + i,) for i, g in enumerate(alive)}
turn = 0
while alive:
    g = alive[turn % len(alive)]
    # Every other switch is made from within a C function.
    if turn % 2:
        value = sorted([g], key=lambda item: item.switch(*arguments.pop(item, ())) or 0)
    else:
        value = g.switch(*arguments.pop(g, ()))
    if g.dead:
        ends.append(value if isinstance(value, int) else 'within')
        alive.remove(g)
    turn += 1
for _ in range(3):
    s = greenlet.greenlet(sleeper)
    s.switch()
    s.throw()
print(turn, ends)
