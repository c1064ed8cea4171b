import process from 'node:process';

// Long enough for connections that are being closed; whatever ends by itself within it ends the process, too.
const graceMs = 500;

/**
 * Ends the process although something is still open in it, such as a server or a timer of a module: the command has done
 * its work, and everything of ours is closed. Text that a slow reader has not taken yet is waited for.
 */
export const endSoon = (): void => {
  // Without a reference the timer fires only where something else keeps the process.
  const leave = setInterval(() => {
    if (process.stdout.writableLength === 0 && process.stderr.writableLength === 0) process.exit();
  }, graceMs);
  leave.unref();
};
