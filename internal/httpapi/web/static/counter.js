// The purchase controls of one sale's card: the button, and messages about the attempt.
import {buy, finished, unfinished} from './buy.js';
import {announce, fromTemplate, part, put, showStock, showTime} from './cards.js';
import {now} from './clock.js';
import {codeOf, keepCode} from './code.js';
import {follow} from './follow.js';
import {call} from './net.js';
import {readLine, showWay} from './line.js';
import {loadOrders} from './orders.js';
import {alertTurn, forget, leave, onEnd, ticketOf, waitInLine} from './room.js';
import {count, length, oneOf, t, zoned} from './words.js';

const role = document.documentElement.dataset.role;

/** The controls of a card. A sale has one attempt at a time, across all tabs of the browser. */
export class Counter {
  constructor(card, sale) {
    this.card = card;
    this.sale = sale;
    this.busy = false;
    this.mine = new Map(); // this buyer's units by orderSn, as far as this page knows
    this.announced = ''; // the number of the order that the card's message is about
    this.place = null; // in the line of a sale with a waiting room
    this.button = part(card, 'buy');
    this.code = part(card, 'code'); // its field; null where the sale asks for none
    if (this.code) this.code.value = codeOf(sale.goodsId);
    this.off = false; // whether a press of the button has no effect
    this.button.addEventListener('click', () => this.off || this.press());
    this.button.addEventListener('blur', () => this.draw());
    part(card, 'quantity')?.addEventListener('change', () => this.draw());
    document.addEventListener('order', (event) => this.hold(event.detail));
    this.draw();
  }

  update(sale) {
    Object.assign(this.sale, sale, {gone: false});
    showStock(this.card, this.sale);
    const phase = showTime(this.card, this.sale);
    this.draw();
    if (phase === 'sold_out' && this.sale.admission === 'waitingRoom') this.askForReturns();
  }

  /** Units that are held unpaid may return to the line, so buyers may still join it. */
  async askForReturns() {
    const line = await readLine(this.sale.goodsId);
    if (!line) return;
    this.sale.returns = line.phase === 'running';
    showTime(this.card, this.sale);
    this.draw();
  }

  /** The catalog no longer has the sale: its merchant has closed it. */
  gone() {
    this.sale.gone = true;
    showTime(this.card, this.sale);
    this.draw();
  }

  /** Records an order; active orders count against the limit per buyer. */
  hold(order) {
    if (order.goodsId !== this.sale.goodsId) return;
    if (['queued', 'created', 'paid'].includes(order.status)) this.mine.set(order.orderSn, order.quantity);
    else this.mine.delete(order.orderSn);
    if (order.orderSn === this.announced) this.follows(order);
    this.draw();
  }

  /** Replaces the card's message, because the order that it announced has changed. */
  follows(order) {
    const overdue = order.status === 'created' && now() >= Date.parse(order.payBy);
    if (order.status === 'created' && !overdue) return;
    this.announced = overdue ? order.orderSn : '';
    this.step(null);
    const paid = order.status === 'paid';
    const words = overdue ? t('say.overdue') : oneOf('say.order', order.status);
    this.say(paid ? 'yes' : 'note', words, paid ? {label: t('orders.open'), href: `/o/${order.orderSn}`} : null);
    // The units of an order that ended are on sale again.
    if (!paid && !overdue) this.reload();
  }

  /** Loads the units that are left. */
  reload() {
    call('GET', `/sales/${this.sale.goodsId}`).then((answer) => answer.ok && this.update(answer.data));
  }

  draw() {
    const phase = this.card.dataset.phase;
    const held = [...this.mine.values()].reduce((sum, n) => sum + n, 0);
    const full = held >= this.sale.perBuyerLimit;
    const lines = this.sale.admission === 'waitingRoom' && !this.turn();
    const open = phase === 'ongoing' || this.turn() || lines && (phase === 'upcoming' || phase === 'sold_out' && this.sale.returns);
    this.off = this.busy || !open || full || role !== 'buyer' && role !== '';
    // Disabling the focused button would drop the focus of those who use the keyboard.
    this.button.disabled = this.off && document.activeElement !== this.button;
    this.button.ariaDisabled = String(this.off);
    const inLine = this.place?.state === 'waiting';
    put(this.button, t(inLine ? 'card.inline' : this.busy ? 'card.busy' : full ? 'card.has' : !open ? `card.${phase}` : role === '' ? 'card.signin' : lines ? 'card.join' : held ? 'card.again' : 'card.buy'));
    this.button.classList.toggle('second', held > 0 && !this.busy);
    const quantity = part(this.card, 'quantity');
    if (this.code) this.code.disabled = this.busy;
    if (!quantity) return;
    quantity.disabled = this.busy || full;
    const most = Math.max(1, this.sale.perBuyerLimit - held);
    quantity.max = most;
    if (document.activeElement !== quantity) quantity.value = Math.min(most, Math.max(1, Math.floor(Number(quantity.value))));
  }

  /** How many units the buyer wants. */
  quantity() {
    return Number(part(this.card, 'quantity')?.value ?? 1);
  }

  /** The address to sign in, which returns to this sale with its quantity. */
  signIn() {
    return '/session?to=' + encodeURIComponent(`/s/${this.sale.goodsId}?quantity=${this.quantity()}`);
  }

  /** Sets the quantity, within the limits. */
  choose(quantity) {
    const field = part(this.card, 'quantity');
    if (!field || !quantity) return;
    field.value = quantity;
    this.draw();
  }

  /** Reports whether it is this buyer's turn to buy. */
  turn() {
    return this.place?.state === 'admitted' && now() < Date.parse(this.place.admittedUntil);
  }

  async press(continues = false) {
    if (this.busy) return;
    if (role === '') {
      location.assign(this.signIn());
      return;
    }
    this.announced = '';
    if (!this.hasCode()) return;
    this.busy = true; // set before the first await, so that a second click has no effect
    this.draw();
    try {
      // A place in the line is the same in all tabs, so each of them shows it.
      if (this.mustJoin()) await this.line();
      else await this.alone(continues);
    } finally {
      this.busy = false;
      this.draw();
    }
  }

  /**
   * Buys while no other tab does. A page that continues an attempt waits a moment for the lock: the
   * page that was just left may still hold it.
   */
  async alone(continues) {
    const buyIf = (lock) => {
      if (!lock) return this.say('note', t('say.othertab'));
      return continues && !unfinished(this.sale.goodsId) ? loadOrders() : this.go();
    };
    if (!navigator.locks) return buyIf(true);
    const how = continues ? {signal: AbortSignal.timeout(3000)} : {ifAvailable: true};
    return navigator.locks.request(`buy-${this.sale.goodsId}`, how, buyIf).catch((error) => {
      if (error.name !== 'TimeoutError') throw error;
      return buyIf(null);
    });
  }

  /** Stores the code that the buyer has entered, or asks for one. An attempt under way needs none. */
  hasCode() {
    if (!this.code) return true;
    keepCode(this.sale.goodsId, this.code.value.trim());
    if (this.code.value.trim() || unfinished(this.sale.goodsId)) return true;
    this.say('no', t('reason.CODE_REQUIRED'));
    this.code.focus();
    return false;
  }

  /** Continues an attempt of an earlier page load, or the wait in the line. */
  resume() {
    const lined = this.sale.admission === 'waitingRoom' && ticketOf(this.sale.goodsId);
    if (role === 'buyer' && (unfinished(this.sale.goodsId) || lined)) this.press(true);
  }

  /** A sale with a waiting room admits only those whose turn it is. An attempt under way was admitted. */
  mustJoin() {
    return this.sale.admission === 'waitingRoom' && !this.turn() && !unfinished(this.sale.goodsId);
  }

  /** Waits in the line for this buyer's turn. */
  async line() {
    const stop = new AbortController();
    const {goodsId} = this.sale;
    const quit = {label: t('room.leave'), press: () => { stop.abort(); leave(goodsId); }};
    this.say('wait', t('room.joining'));
    const trouble = (answer, left) => this.say('wait', oneOf('wait', answer.reason, {n: left}), quit);
    const {place, refused} = await waitInLine(goodsId, this.code?.value.trim(), (p, line) => this.stand(p, line, quit), trouble, stop.signal);
    showWay(this.card, null);
    if (refused) {
      this.place = null;
      if (!['STOPPED', 'ELSEWHERE', 'UNAUTHENTICATED'].includes(refused.reason)) forget(goodsId);
      this.refused(refused);
      return;
    }
    if (place.state === 'admitted') this.callIn();
    else {
      forget(goodsId);
      this.place = null;
      this.say('no', oneOf('room', place.state));
    }
  }

  /** Shows the place in the line. */
  stand(place, line, quit) {
    this.place = place;
    this.draw();
    if (place.state !== 'waiting') return;
    showWay(this.card, place, line);
    const values = {n: count(place.ahead), time: length(place.etaSeconds * 1000)};
    const words = !place.position ? 'room.drawn' : place.ahead === 0 ? 'room.next' : 'room.ahead';
    this.say('wait', t(words, values), quit);
  }

  /** It is this buyer's turn: shows the time left until the purchase begins or the turn is over. */
  callIn() {
    const {place} = this;
    this.reload();
    const ended = new AbortController();
    alertTurn(t('room.turn.short'), ended.signal);
    onEnd(this.sale.goodsId, () => this.endElsewhere(place), ended.signal);
    const left = () => {
      if (this.place !== place) ended.abort();
      if (this.place !== place || this.busy && part(this.card, 'steps')?.dataset.at) return;
      if (this.turn()) {
        this.say('yes', t('room.turn', {time: length(Date.parse(place.admittedUntil) - now())}));
        setTimeout(left, 500);
        return;
      }
      this.place = null;
      ended.abort();
      forget(this.sale.goodsId);
      this.say('no', t('room.missed'));
      this.draw();
    };
    left();
  }

  /** Another tab has used or left the place. */
  endElsewhere(place) {
    if (this.place !== place || this.busy || !this.turn()) return;
    this.place = null;
    this.say('note', t('reason.ELSEWHERE'));
    this.draw();
    loadOrders();
  }

  async go() {
    const stop = new AbortController();
    const quantity = this.quantity();
    const outcome = await buy(this.sale.goodsId, quantity, this.code?.value.trim(), (step, detail) => this.onStep(step, detail, stop), stop.signal);
    this.place = null;
    forget(this.sale.goodsId);
    if (outcome.refused) this.refused(outcome.refused);
    else await this.queued(outcome.orderSn);
  }

  onStep(step, detail, stop) {
    if (step === 'wait') {
      const words = oneOf('wait', detail.answer.reason, {n: detail.left});
      this.say('wait', words, detail.step === 'path' ? {label: t('say.stop'), press: () => stop.abort()} : null);
      return;
    }
    this.step(step === 'path' ? 'path' : 'queue');
    this.say('wait', t(`say.${step}`));
  }

  /** Follows the order until it is written, which confirms the purchase, or until the session ends. */
  queued(orderSn) {
    this.step('queue');
    this.say('wait', t('say.queued'));
    return new Promise((done) => follow(orderSn, (order) => {
      if (order.status === 'queued') return false;
      finished(this.sale.goodsId);
      this.written(order);
      loadOrders();
      done();
      return true;
    }, (answer) => {
      this.refused(answer);
      done();
    }));
  }

  written(order) {
    if (order.status !== 'created' && order.status !== 'paid') {
      this.step(null);
      this.say('no', order.status === 'failed' ? oneOf('failure', order.failureReason) : t(`status.${order.status}`));
      return;
    }
    this.hold(order);
    this.reload();
    this.step('won');
    this.announced = order.orderSn;
    if (order.amount === 0) this.say('yes', t('say.free'));
    else this.say('yes', t('say.won', {time: zoned(Date.parse(order.payBy))}), {label: t('say.pay'), href: `/o/${order.orderSn}`});
    this.follows(order);
  }

  refused(answer) {
    this.step(null);
    if (answer.reason === 'SOLD_OUT' && answer.data.available === 0) this.update({available: 0});
    const few = answer.reason === 'SOLD_OUT' && answer.data.available > 0;
    const words = few ? t('reason.SOLD_OUT.few', {n: count(answer.data.available)}) : oneOf('reason', answer.reason);
    const more = {
      UNAUTHENTICATED: {label: t('nav.signin'), href: this.signIn()},
      LIMIT_REACHED: {label: t('nav.orders'), href: '#orders'},
    }[answer.reason];
    this.say('no', words, more);
    if (answer.reason === 'LIMIT_REACHED') loadOrders(); // the field then shows what is left to this buyer
  }

  /** Shows the attempt's progress; null hides it. */
  step(name) {
    let steps = part(this.card, 'steps');
    if (!steps) {
      if (!name) return;
      steps = fromTemplate('steps');
      part(this.card, 'say').before(steps);
    }
    steps.hidden = !name;
    for (const li of steps.children) {
      if (li.dataset.step === name) li.setAttribute('aria-current', 'step');
      else li.removeAttribute('aria-current');
    }
    steps.dataset.at = name ?? '';
  }

  /** Shows a message of the kind wait, yes, no or note, with an optional action. */
  say(kind, words, action) {
    const say = part(this.card, 'say');
    say.dataset.kind = kind;
    let text = say.querySelector('p');
    if (!text) {
      text = document.createElement('p');
      say.append(text);
    }
    announce(text, words);
    const old = say.querySelector('.action');
    // Keep the focus during a countdown.
    if (old && action && old.textContent === action.label) return;
    old?.remove();
    if (!action) return;
    const element = document.createElement(action.href ? 'a' : 'button');
    element.className = 'action';
    element.textContent = action.label;
    if (action.href) element.href = action.href;
    else element.type = 'button';
    element.addEventListener('click', () => action.press?.());
    say.append(element);
  }
}
