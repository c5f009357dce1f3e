// A wire to the host that can be cut.

import net from 'node:net';

export async function wire(target) {
  const { hostname, port } = new URL(target);
  const sockets = new Set();
  const state = { cuts: 0, left: Infinity };
  const server = net.createServer((near) => {
    const far = net.connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on('data', (bytes) => far.write(bytes));
    far.on('data', (bytes) => {
      if (bytes.length < state.left) {
        state.left -= bytes.length;
        near.write(bytes);
        return;
      }
      // The cut comes in the middle of whatever is being sent.
      near.write(bytes.subarray(0, state.left), () => near.destroy());
      state.cuts++;
      state.left = Infinity;
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    base: target.replace(`${hostname}:${port}`, `127.0.0.1:${server.address().port}`),
    /** Cuts the wire after so many bytes more. */
    cutAfter(bytes) {
      state.left = bytes;
    },
    get cuts() {
      return state.cuts;
    },
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
