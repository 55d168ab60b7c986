// @ts-check
// The server answers a user's questions of the past one at a time: counts, previews, and pages before a place. So they wait
// for each other here. Another tab may ask at the same moment: what is refused for that is asked again.

let last = /** @type {Promise<any>} */ (Promise.resolve());

/** Asks when all earlier questions are answered. @template T @param {() => Promise<T>} ask @returns {Promise<T>} */
export function inTurn(ask) {
  const patiently = (/** @type {number} */ tries) => ask().catch(async (error) => {
    if (error.status !== 429 || tries === 1 || error.retryAfter > 10) throw error;
    await new Promise((resolve) => setTimeout(resolve, 1000 * (error.retryAfter ?? 1)));
    return patiently(tries - 1);
  });
  const answer = last.then(() => patiently(4));
  last = answer.catch(() => null);
  return answer;
}
