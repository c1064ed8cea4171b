/** `npm run test:hostile`: the bodies of `test/hostile` for every place of every schema, as large as each operation takes them; minutes long. */
import process from 'node:process';

process.env.ACP_HOSTILE = 'whole';
process.argv.push('test/hostile', '--test-timeout=3600000');
await import('../run.mjs');
