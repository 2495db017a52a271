// A buyer's step on an order: pay or cancel. Both are idempotent, so a retry is safe.
import {callWithRetry} from './net.js';

/** Takes the step and returns the answer. waiting(answer, secondsLeft) reports the pauses. */
export async function takeStep(orderSn, name, waiting) {
  for (let tries = 1; ; tries++) {
    const answer = await callWithRetry('POST', `/orders/${orderSn}/${name}`, {within: 30e3, waiting});
    // CONFLICT with Retry-After: the order is still queued.
    if (answer.reason !== 'CONFLICT' || !answer.wait || tries === 10) return answer;
    await new Promise((done) => setTimeout(done, answer.wait * 1000));
  }
}
