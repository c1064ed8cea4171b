/** Preloaded by a test: writes the URL of every module that the program loads to the file in LOADED_MODULES. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import process from 'node:process';

const list = process.env['LOADED_MODULES'] ?? '';

registerHooks({
  load(url, context, next) {
    appendFileSync(list, `${url}\n`);
    return next(url, context);
  },
});
