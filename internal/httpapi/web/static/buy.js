// One try to buy: a random path, and the purchase with it. The path is the try's identity: as long as it is the same,
// asking again gives the same order and takes nothing twice. So it is kept until the outcome is known, also when the
// page is left and opened again.
import {call, insist} from './net.js';
import {now} from './clock.js';

const user = document.documentElement.dataset.user;
const keyOf = (goodsId) => `try:${user}:${goodsId}`;

/** The try that was begun and whose outcome this browser has not heard, or null. */
export function unfinished(goodsId) {
  try {
    return JSON.parse(localStorage.getItem(keyOf(goodsId)));
  } catch {
    return null;
  }
}

function keep(goodsId, attempt) {
  try {
    if (attempt) localStorage.setItem(keyOf(goodsId), JSON.stringify(attempt));
    else localStorage.removeItem(keyOf(goodsId));
  } catch { /* a browser that keeps nothing still buys */ }
}

/** Forgets a try whose outcome is known. */
export const finished = (goodsId) => keep(goodsId, null);

/**
 * Tries to buy. say(step, detail) hears how it goes: 'path', 'wait' {answer, left, step}, 'purchase'. The outcome is
 * {orderSn} or {refusal: answer}. A try that was left unfinished goes on with its own path, and with no other: what
 * nobody has pressed for is not bought.
 */
export async function buy(goodsId, quantity, say, signal) {
  let attempt = unfinished(goodsId);
  const resumed = Boolean(attempt);
  for (let paths = 0; ; paths++) {
    if (!attempt) {
      const issued = await path(goodsId, say, signal);
      if (!issued.ok) return {refusal: issued};
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
      return {refusal: answer};
    }
    finished(goodsId);
    const orderSn = await sinceThen(goodsId, attempt.begun); // the path has gone; whatever it bought is among the orders
    if (orderSn) return {orderSn};
    if (resumed || paths > 0) return {refusal: answer};
    attempt = null;
  }
}

function path(goodsId, say, signal) {
  say('path');
  return insist('POST', `/randomPath?goodsId=${goodsId}`, {signal, waiting: (answer, left) => say('wait', {answer, left, step: 'path'})});
}

/** Asks with one path until there is an answer that says something; unsure where patience ended first. */
async function purchase(goodsId, attempt, say, signal) {
  say('purchase');
  const answer = await insist('POST', `/${attempt.path}/decrStock`, {
    body: {goodsId, decrStock: attempt.quantity}, signal,
    waiting: (a, left) => say('wait', {answer: a, left, step: 'purchase'}),
  });
  return {answer, unsure: ['NETWORK', 'UNAVAILABLE', 'RATE_LIMITED', 'INTERNAL', 'STOPPED'].includes(answer.reason)};
}

/** The order of a goods that was made since a moment, or undefined. */
async function sinceThen(goodsId, begun) {
  const mine = await call('GET', '/orders?limit=20');
  const found = mine.data?.items?.find((o) => o.goodsId === goodsId && o.status !== 'failed' && Date.parse(o.createdAt) >= begun - 1000);
  return found?.orderSn;
}
