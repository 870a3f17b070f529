// SPDX-License-Identifier: Apache-2.0
// The java program of the zoo: compiled code, threads, garbage, faults that become exceptions, a child.
import java.util.*;

public class Work {
    static int depth(int n) {
        return depth(n + 1) + 1;
    }

    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[4];
        long[] sums = new long[4];
        for (int t = 0; t < 4; t++) {
            int own = t;
            threads[t] = new Thread(() -> {
                Map<Integer, String> map = new HashMap<>();
                for (int i = 0; i < 60000; i++) {
                    map.merge(i % 997, "x", (a, b) -> a.length() > 50 ? b : a + b);
                    sums[own] += map.get(i % 997).length();
                }
            });
            threads[t].start();
        }
        for (Thread thread : threads)
            thread.join();
        System.out.println(Arrays.toString(sums));
        try {
            Object nothing = null;
            nothing.hashCode();
        } catch (NullPointerException e) {
            System.out.println("null");
        }
        try {
            depth(0);
        } catch (StackOverflowError e) {
            System.out.println("deep");
        }
        System.gc();
        Process child = new ProcessBuilder("echo", "child").redirectErrorStream(true).start();
        System.out.print(new String(child.getInputStream().readAllBytes()));
        System.out.println(child.waitFor());
        System.exit(5);
    }
}
