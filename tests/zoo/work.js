// SPDX-License-Identifier: Apache-2.0
// The node program of the zoo: compiled code, worker threads, children, timers, files.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (isMainThread) {
  const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));
  console.log(fib(24));
  const answers = [];
  let open = 3;
  for (let i = 0; i < 3; i++) {
    new Worker(__filename, { workerData: i }).on('message', (m) => answers.push(m)).on('exit', () => {
      if (--open) return;
      console.log(answers.sort().join(' '));
      console.log(require('child_process').execSync('echo child').toString().trim());
      require('zlib').gzip('x'.repeat(100000), (e, z) => {
        console.log(require('zlib').gunzipSync(z).length);
        process.exitCode = 3;
      });
    });
  }
} else {
  let s = 0;
  for (let i = 0; i < 300000; i++) s = (s + i * (workerData + 1)) % 1000003;
  parentPort.postMessage(s);
}
