/**
 * `npm run test:fleet -- --minutes 15 --processes 4`: a fleet on one database under load, whose processes are killed,
 * stopped, paused and cut off at random; then whether nothing that was acknowledged is lost and nothing was done twice.
 */
import process from 'node:process';
import { parseArgs } from 'node:util';
import { takes } from './lease-history.ts';
import { soak } from './soak.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '15' },
    processes: { type: 'string', default: '4' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    'longest-pause': { type: 'string', default: '70' },
  },
});
const seed = Number(values.seed);
console.log(`Seed ${seed}`);
const { history, incidents, lives, findings } = await soak({
  processes: Number(values.processes),
  seconds: Number(values.minutes) * 60,
  seed,
  longestPauseSeconds: Number(values['longest-pause']),
  tell: (line) => console.log(`${new Date().toISOString().slice(11, 19)}  ${line}`),
});
const { streams, answers, queued, turns, orders, limited, spent, usedUp, resumed, refusals } = history;
const sum = (counts: Iterable<number>): number => [...counts].reduce((total, count) => total + count, 0);
const leases = sum(lives.map(({ log }) => log().filter(({ message }) => message === takes).length));
console.log(
  `${incidents.length} incidents in ${lives.length} processes; leases of services were taken ${leases} times.`,
);
console.log(
  `${streams.size} streams, gone on with on ${resumed} further connections; ${answers.size} answers, ${queued.size} queued runs, ${sum([...turns.values()].map(({ length }) => length))} turns of ${turns.size} sessions, ${orders.size} orders; ${sum(limited.values())} runs of ${limited.size} agents with a limit of runs and ${sum([...spent.values()].map(({ runs }) => runs))} of ${spent.size} with one of tokens and cost; ${usedUp.size} of these agents reached it.`,
);
console.log('Refused:', Object.fromEntries(refusals));
for (const finding of findings.slice(0, 50)) console.log(`FOUND: ${finding}`);
console.log(findings.length === 0 ? 'Nothing was lost, repeated or exceeded.' : `${findings.length} findings.`);
process.exitCode = findings.length === 0 ? 0 : 1;
