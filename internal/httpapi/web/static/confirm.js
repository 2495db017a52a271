// Dialogs that ask for a confirmation.

/**
 * Returns a function that opens a dialog and resolves to true if the user closes it with the button
 * of this value. Opening it again answers an open question with false.
 */
export function confirmation(id, value) {
  const dialog = document.getElementById(id);
  let answer = () => {};
  dialog.addEventListener('close', () => {
    // The browser queues this event: it can arrive when the dialog is open again.
    if (!dialog.open) answer(dialog.returnValue === value);
  });
  return () => {
    answer(false);
    dialog.returnValue = '';
    dialog.showModal();
    return new Promise((done) => { answer = done; });
  };
}
