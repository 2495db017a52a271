// The draw of a waiting room, as docs/explanation/waiting-room.md describes it: a Feistel network
// whose round functions are words of HMAC-SHA256. Package waitingroom computes the same in Go.
// crypto.subtle exists only on pages with TLS, and on the machine itself.

const rounds = 10;
const label = 'seckill waiting room draw v1\0';
const text = new TextEncoder();

const bytesOf = (hex) => Uint8Array.from(hex.match(/../g), (byte) => parseInt(byte, 16));

/** An integer as 4 bytes, the most significant first. */
function big(n) {
  const out = new Uint8Array(4);
  new DataView(out.buffer).setUint32(0, n);
  return out;
}

/** The function that returns the HMAC-SHA256 of byte arrays, one after the other. */
async function macOf(key) {
  const how = {name: 'HMAC', hash: 'SHA-256'};
  const imported = await crypto.subtle.importKey('raw', key, how, false, ['sign']);
  return async (...parts) => {
    const input = new Blob(parts);
    return new DataView(await crypto.subtle.sign('HMAC', imported, await input.arrayBuffer()));
  };
}

/** The commitment to a seed of 64 hex digits: its SHA-256, in hex. */
export async function commitmentOf(seed) {
  const sum = new Uint8Array(await crypto.subtle.digest('SHA-256', bytesOf(seed)));
  return Array.from(sum, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The position of a number, both from 1, in the draw of a seed, a digest and a size. */
export async function positionOf(number, {seed, digest, size}) {
  if (number > size) return number;
  const first = await macOf(bytesOf(seed));
  const mac = await macOf(await first(text.encode(label), big(size), text.encode(digest)));
  let half = 4;
  while (4 ** half < size) half++;
  const values = 2 ** half;
  const round = async (i, v) => {
    const words = await mac(Uint8Array.of(i), big(v >> 4));
    return words.getUint16(2 * (v & 15)) & (values - 1);
  };
  let x = number - 1;
  do { // a result that is not below the size is permuted again
    let [left, right] = [Math.floor(x / values), x % values];
    for (let i = 0; i < rounds; i++) [left, right] = [right, left ^ await round(i, right)];
    x = left * values + right;
  } while (x >= size);
  return x + 1;
}
