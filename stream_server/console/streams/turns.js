// @ts-check
// The server answers a user's questions of the past one at a time: counts, previews, and pages before a place. So they wait
// for each other here. Another tab may ask at the same moment: what is refused for that is asked again.

const TRIES = 4;
const LONGEST_SECONDS = 10;
let last = /** @type {Promise<any>} */ (Promise.resolve());

/** Asks when all earlier questions are answered. @template T @param {() => Promise<T>} ask @returns {Promise<T>} */
export function inTurn(ask) {
  const answer = last.then(() => patiently(ask));
  last = answer.catch(() => null);
  return answer;
}

/** @template T @param {() => Promise<T>} ask @returns {Promise<T>} */
async function patiently(ask, tries = TRIES) {
  try {
    return await ask();
  } catch (error) {
    const { status, retryAfter = 1 } = /** @type {any} */ (error);
    if (status !== 429 || tries === 1 || retryAfter > LONGEST_SECONDS) throw error;
    await new Promise((resolve) => setTimeout(resolve, 1000 * retryAfter));
    return patiently(ask, tries - 1);
  }
}
