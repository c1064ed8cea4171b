import process from 'node:process';
import { endSoon } from './cli/end-soon.ts';
import { limitArenas } from './cli/malloc-arenas.ts';

limitArenas(process.argv);
// After it, so that a process that is replaced has loaded nothing.
const { run } = await import('./cli/program.ts');
process.exitCode = await run(process.argv);
endSoon();
