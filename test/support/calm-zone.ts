/** IANA name of a zone in which it is about noon at `at` (epoch milliseconds): no day of quotas begins during a test. */
export const calmZone = (at = Date.now()): string => {
  const hoursAfterNoon = new Date(at).getUTCHours() - 12;
  if (hoursAfterNoon === 0) return 'UTC';
  // A zone of Etc has the sign of POSIX: hours behind Greenwich count up.
  return `Etc/GMT${hoursAfterNoon < 0 ? '' : '+'}${hoursAfterNoon}`;
};
