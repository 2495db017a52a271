// The page to sign in and out.
import {call} from './net.js';
import {oneOf, t} from './words.js';

const say = document.getElementById('say');

/** The page to open after signing in; addresses of other sites are refused. */
function next(role) {
  const to = new URLSearchParams(location.search).get('to') ?? '';
  if (/^\/(console(\/[\w/-]*)?)?$/.test(to) && !(role === 'buyer' && to.startsWith('/console'))) return to;
  return role === 'buyer' ? '/' : '/console';
}

async function enter(body, buttons) {
  for (const b of buttons) b.disabled = true;
  say.textContent = t('session.going');
  const answer = await call('POST', '/session', body);
  if (answer.ok) {
    location.assign(next(answer.data.role));
    return;
  }
  for (const b of buttons) b.disabled = false;
  say.dataset.kind = 'no';
  say.textContent = answer.reason === 'UNAUTHENTICATED' ? t('session.bad') : oneOf('reason', answer.reason);
}

const guests = document.querySelectorAll('.guest');
for (const button of guests) button.addEventListener('click', () => enter({guest: button.dataset.guest}, guests));

const form = document.getElementById('enter');
form?.addEventListener('submit', (event) => {
  event.preventDefault();
  enter({token: form.token.value.trim()}, form.querySelectorAll('button'));
});

document.getElementById('leave')?.addEventListener('click', async () => {
  const answer = await call('DELETE', '/session');
  if (answer.ok) location.assign('/');
  else say.textContent = oneOf('reason', answer.reason);
});
