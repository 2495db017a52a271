// One purchase attempt: a random path, and the purchase with it. A repeated request with the same
// path returns the same order, so the path is stored until the outcome is known. An attempt
// continues when the page is opened again.
import {call, callWithRetry, countdown} from './net.js';
import {now} from './clock.js';
import {store, stored} from './stored.js';

/** How long a step of a purchase is repeated, in ms. */
const patience = 120e3;

/** The stored attempt of a sale whose outcome is unknown, or null. */
export const unfinished = (goodsId) => JSON.parse(stored('try', goodsId) || 'null');

const keep = (goodsId, attempt) => store('try', goodsId, JSON.stringify(attempt));

/** Deletes an attempt whose outcome is known. */
export const finished = (goodsId) => store('try', goodsId, '');

/**
 * Makes a purchase attempt and returns {orderSn} or {refused: answer}. code is the sale's access code
 * or ''. say(step, detail) reports
 * the steps 'path', 'purchase' and 'wait' {answer, left, step}. A stored attempt continues with its
 * own path only: a new path would be a second purchase, which the user did not request.
 */
export async function buy(goodsId, quantity, code, say, signal) {
  let attempt = unfinished(goodsId);
  const resumed = Boolean(attempt);
  for (let paths = 0; ; paths++) {
    if (!attempt) {
      const issued = await path(goodsId, code, say, signal);
      if (!issued.ok) return {refused: issued};
      attempt = {path: issued.data.randomPath, expiresAt: issued.data.expiresAt, quantity, begun: now()};
      keep(goodsId, attempt);
    }
    const {answer, unsure} = await purchase(goodsId, attempt, say, signal);
    if (answer.ok) {
      keep(goodsId, {...attempt, orderSn: answer.data.orderSn});
      return {orderSn: answer.data.orderSn};
    }
    if (answer.reason !== 'BAD_PATH') {
      if (!unsure) finished(goodsId);
      return {refused: answer};
    }
    finished(goodsId);
    // The path has expired, but the purchase may have succeeded before.
    const orderSn = await orderSince(goodsId, attempt.begun);
    if (orderSn) return {orderSn};
    if (resumed || paths > 0) return {refused: answer};
    attempt = null;
  }
}

/** Asks again while a node whose clock is behind the page's says that the sale has not started. */
async function path(goodsId, code, say, signal) {
  say('path');
  const body = code ? {code} : null;
  const waiting = (answer, left) => say('wait', {answer, left, step: 'path'});
  for (let asked = 1; ; asked++) {
    const answer = await callWithRetry('POST', `/randomPath?goodsId=${goodsId}`, {body, signal, waiting, within: patience});
    if (answer.reason !== 'NOT_STARTED' || asked === 3) return answer;
    if (!await countdown(1, (left) => waiting(answer, left), signal)) return {...answer, reason: 'STOPPED'};
  }
}

/** Repeats the purchase until it has a definite answer; unsure where the time ran out first. */
async function purchase(goodsId, attempt, say, signal) {
  say('purchase');
  const answer = await callWithRetry('POST', `/${attempt.path}/decrStock`, {
    body: {goodsId, decrStock: attempt.quantity}, signal, within: patience,
    waiting: (a, left) => say('wait', {answer: a, left, step: 'purchase'}),
  });
  // That a session has ended does not say what became of an answer that was lost.
  return {answer, unsure: ['NETWORK', 'UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL', 'STOPPED', 'UNAUTHENTICATED', 'FORBIDDEN'].includes(answer.reason)};
}

/** The number of an order for the goods that was created since a time in ms, or undefined. */
async function orderSince(goodsId, begun) {
  const mine = await call('GET', '/orders?limit=20');
  const found = mine.data?.items?.find((o) => o.goodsId === goodsId && o.status !== 'failed' && Date.parse(o.createdAt) >= begun - 1000);
  return found?.orderSn;
}
