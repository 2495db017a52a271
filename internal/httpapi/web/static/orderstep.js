// What an order has come to, and a buyer's step on it: pay or cancel. Both are idempotent, so a
// retry is safe.
import {callWithRetry} from './net.js';

/** What the order has come to: its status, or shipped or refunded, which the API has in its times. */
export function stateOf(o) {
  if (o.status === 'paid' && o.shippedAt) return 'shipped';
  return o.status === 'cancelled' && o.paidAt ? 'refunded' : o.status;
}

/** Takes the step and returns the answer. waiting(answer, secondsLeft) reports the pauses. */
export async function takeStep(orderSn, name, waiting) {
  for (let tries = 1; ; tries++) {
    const answer = await callWithRetry('POST', `/orders/${orderSn}/${name}`, {within: 30e3, waiting});
    // CONFLICT with Retry-After: the order is still queued.
    if (answer.reason !== 'CONFLICT' || !answer.wait || tries === 10) return answer;
    await new Promise((done) => setTimeout(done, answer.wait * 1000));
  }
}
