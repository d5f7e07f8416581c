// Generates the search environment's corpus and questions. The articles describe an invented archipelago, so that no
// model knows the answers; each question needs one, two or three articles. Run: node media/data/make/search.mjs
import { lines, stream, writeData } from './random.mjs';

const { between, pick, shuffled } = stream(20_260_401);

/** Two-part names that are already in use; no name is used twice. */
const taken = new Set();
function names(count, heads, tails) {
  const found = [];
  while (found.length < count) {
    const name = pick(heads) + pick(tails);
    if (taken.has(name)) continue;
    taken.add(name);
    found.push(name);
  }
  return found;
}
const given = [
  'Alva',
  'Bram',
  'Cora',
  'Dario',
  'Edda',
  'Falk',
  'Greta',
  'Hanno',
  'Ilse',
  'Jarek',
  'Kaia',
  'Lorin',
  'Mira',
  'Nils',
  'Odile',
  'Piet',
  'Runa',
  'Sven',
  'Tilda',
  'Ulf',
  'Vera',
  'Wim',
  'Yara',
  'Zeno',
];
const heads = [
  'Ast',
  'Bel',
  'Cor',
  'Dun',
  'Elm',
  'Fen',
  'Gar',
  'Hal',
  'Ister',
  'Jor',
  'Kel',
  'Lum',
  'Mor',
  'Nar',
  'Ost',
  'Pell',
  'Quil',
  'Rav',
  'Sol',
  'Tar',
  'Ulm',
  'Ver',
  'Wend',
  'Yor',
  'Zan',
];

const islands = names(4, heads, ['isle', 'oria', 'aland', 'una']);
const rivers = names(10, heads, ['ach', 'wen', 'ida', 'orn']);
const towns = names(26, heads, ['by', 'holm', 'wick', 'stad', 'mouth', 'ford']).map((name, i) => ({
  name,
  island: islands[i % islands.length],
  river: rivers[i % rivers.length],
  founded: between(1050, 1690),
  people: between(4, 190) * 1000,
  trade: pick([
    'glass',
    'salt',
    'clocks',
    'woollen cloth',
    'cheese',
    'ropes',
    'copper',
    'paper',
    'porcelain',
    'smoked fish',
  ]),
}));
const trades = ['novelist', 'painter', 'composer', 'engineer', 'botanist', 'cartographer'];
const surnames = names(72, heads, ['ander', 'berg', 'quist', 'mann', 'sen', 'vold', 'rup', 'eux']);
const people = surnames.map((surname, i) => {
  const born = between(1790, 1930);
  return {
    name: `${given[i % given.length]} ${surname}`,
    trade: trades[i % trades.length],
    born,
    died: born + between(38, 92),
    town: towns[(i * 7) % towns.length],
    teacher: undefined,
  };
});
for (const person of people) {
  const elder = people.filter(other => other.trade === person.trade && other.born < person.born - 15);
  if (elder.length > 0) person.teacher = pick(elder);
}
const madeBy = trade => people.filter(person => person.trade === trade);
const titles = (count, first, second) => shuffled(first.flatMap(a => second.map(b => `${a} ${b}`))).slice(0, count);
const works = [
  ...titles(
    30,
    ['The Silent', 'The Last', 'A Winter', 'The Amber', 'The Second', 'Beyond the', 'The Hollow'],
    ['Lighthouse', 'Harvest', 'Orchard', 'Ferryman', 'Bridge', 'Letter', 'Tide', 'Garden'],
  ).map(title => ({ title, kind: 'novel', verb: 'written', by: pick(madeBy('novelist')) })),
  ...titles(
    20,
    ['Girl with', 'Still Life with', 'Morning with', 'Old Man and'],
    ['Herrings', 'a Blue Jug', 'Three Pears', 'a Lantern', 'Swallows', 'a Broken Oar'],
  ).map(title => ({ title, kind: 'painting', verb: 'painted', by: pick(madeBy('painter')) })),
  ...titles(
    16,
    ['The Miller of', 'The Bride of', 'Songs from', 'The Night in'],
    shuffled(towns)
      .slice(0, 6)
      .map(({ name }) => name),
  ).map(title => ({ title, kind: 'opera', verb: 'composed', by: pick(madeBy('composer')) })),
];
for (const work of works) work.year = work.by.born + between(24, 36);
const bridges = shuffled(towns)
  .slice(0, 16)
  .map(town => {
    const by = pick(madeBy('engineer'));
    return { name: `${town.name} Bridge`, town, by, opened: by.born + between(30, 37), length: between(60, 900) };
  });
const firms = names(22, heads, ['ex', 'works', 'line', 'craft']).map(name => {
  const founder = pick(people);
  return {
    name,
    founder,
    town: pick(towns),
    founded: founder.born + between(22, 37),
    makes: pick([
      'steam pumps',
      'typewriters',
      'bicycles',
      'organ pipes',
      'barometers',
      'printing ink',
      'enamel stoves',
      'sailing gear',
    ]),
  };
});

const documents = [];
/** Adds an article; `words` are the search terms for the article besides its title. */
const article = (title, words, text) =>
  documents.push({ id: `doc_${documents.length}`, title, content: `${title}\n${text}`, query: `${title} ${words}` });
const a = noun => `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${noun}`;
const place = ({ name, island }) => `${name} on ${island}`;
for (const island of islands) {
  const own = towns.filter(town => town.island === island).sort((a, b) => b.people - a.people);
  article(
    island,
    'largest towns',
    `${island} is one of the four islands of the Merrow archipelago. Its largest town is ${own[0].name}, followed by ${own[1].name}. The island has ${own.length} towns.`,
  );
}
for (const river of rivers) {
  const along = towns.filter(town => town.river === river).map(({ name }) => name);
  article(
    `${river} (river)`,
    'kilometres',
    `The ${river} is a river of the Merrow archipelago, ${between(20, 160)} kilometres long. Towns on streams of this name are ${along.join(', ')}.`,
  );
}
for (const town of towns)
  article(
    town.name,
    'town island river',
    `${town.name} is a town on the island of ${town.island}, on the river ${town.river}. It was founded in ${town.founded} and has about ${town.people} inhabitants. It is known for its ${town.trade}.`,
  );
for (const person of people)
  article(
    person.name,
    'born',
    `${person.name} (${person.born}–${person.died}) was ${a(person.trade)} from the Merrow archipelago, born in ${person.town.name}.${person.teacher ? ` ${person.name} was a pupil of the ${person.teacher.trade} ${person.teacher.name}.` : ''}`,
  );
for (const work of works)
  article(
    work.title,
    `${work.kind} by`,
    `${work.title} is ${a(work.kind)} ${work.verb} by ${work.by.name} in ${work.year}. ${pick(['It was received coolly at first.', 'It made its author known beyond the islands.', 'Three versions of it are known.', 'It was long thought to be lost.'])}`,
  );
for (const bridge of bridges)
  article(
    bridge.name,
    'road bridge engineer',
    `The ${bridge.name} is a road bridge in ${place(bridge.town)}. It was designed by the engineer ${bridge.by.name}, opened in ${bridge.opened} and is ${bridge.length} metres long.`,
  );
for (const firm of firms)
  article(
    firm.name,
    'maker founded',
    `${firm.name} is a maker of ${firm.makes} with its seat in ${place(firm.town)}. It was founded in ${firm.founded} by ${firm.founder.name}.`,
  );

const articles = new Map(documents.map(each => [each.title, each]));
const ask = (question, answer, ...about) => ({
  question,
  ground_truth: [String(answer)],
  supporting: about.map(title => articles.get(title).id),
  queries: about.map(title => articles.get(title).query),
});
const pairs = list => Array.from({ length: 40 }, () => [pick(list), pick(list)]).filter(([a, b]) => a !== b);
const questions = [
  ...towns.map(town => ask(`In which year was the town of ${town.name} founded?`, town.founded, town.name)),
  ...towns.map(town => ask(`What is the town of ${town.name} known for?`, town.trade, town.name)),
  ...people.map(person =>
    ask(
      `On which island was the ${person.trade} ${person.name} born?`,
      person.town.island,
      person.name,
      person.town.name,
    ),
  ),
  ...people
    .filter((_, i) => i % 2 === 0)
    .map(person =>
      ask(
        `Which river flows through the birthplace of ${person.name}?`,
        person.town.river,
        person.name,
        person.town.name,
      ),
    ),
  ...people
    .filter(({ teacher }) => teacher)
    .map(person =>
      ask(`Where was the teacher of ${person.name} born?`, person.teacher.town.name, person.name, person.teacher.name),
    ),
  ...works.map(work =>
    ask(
      `In which town was the author of the ${work.kind} "${work.title}" born?`,
      work.by.town.name,
      work.title,
      work.by.name,
    ),
  ),
  ...works
    .filter((_, i) => i % 2 === 0)
    .map(work =>
      ask(
        `In which year did the author of the ${work.kind} "${work.title}" die?`,
        work.by.died,
        work.title,
        work.by.name,
      ),
    ),
  ...works
    .filter(({ by }) => by.teacher)
    .map(work =>
      ask(
        `Whose pupil was the author of the ${work.kind} "${work.title}"?`,
        work.by.teacher.name,
        work.title,
        work.by.name,
      ),
    ),
  ...works
    .filter((_, i) => i % 3 === 0)
    .map(work =>
      ask(
        `What is the birthplace of the author of "${work.title}" known for?`,
        work.by.town.trade,
        work.title,
        work.by.name,
        work.by.town.name,
      ),
    ),
  ...bridges.map(bridge =>
    ask(`In which year was the engineer of the ${bridge.name} born?`, bridge.by.born, bridge.name, bridge.by.name),
  ),
  ...bridges.map(bridge =>
    ask(
      `Which river flows through the town where the engineer of the ${bridge.name} was born?`,
      bridge.by.town.river,
      bridge.name,
      bridge.by.name,
      bridge.by.town.name,
    ),
  ),
  ...firms.map(firm =>
    ask(`What was the trade of the founder of ${firm.name}?`, firm.founder.trade, firm.name, firm.founder.name),
  ),
  ...firms.map(firm =>
    ask(
      `In which town does the maker of ${firm.makes} founded by ${firm.founder.name} have its seat?`,
      firm.town.name,
      firm.name,
    ),
  ),
  ...pairs(people)
    .filter(([a, b]) => a.born !== b.born)
    .map(([a, b]) =>
      ask(`Who was born earlier, ${a.name} or ${b.name}?`, a.born < b.born ? a.name : b.name, a.name, b.name),
    ),
  ...pairs(firms).map(([a, b]) =>
    ask(
      `Do ${a.name} and ${b.name} have their seats on the same island?`,
      a.town.island === b.town.island ? 'yes' : 'no',
      a.name,
      b.name,
    ),
  ),
  ...pairs(bridges)
    .filter(([a, b]) => a.length !== b.length)
    .map(([a, b]) =>
      ask(`Which is longer, the ${a.name} or the ${b.name}?`, a.length > b.length ? a.name : b.name, a.name, b.name),
    ),
];
const distinct = [...new Map(questions.map(row => [row.question, row])).values()];
const mixed = shuffled(distinct).map((row, i) => ({ id: `q_${i}`, ...row }));
const validation = 100;

writeData({
  'search/corpus.jsonl': lines(documents.map(({ id, content }) => ({ id, content }))),
  'search/train.jsonl': lines(mixed.slice(validation)),
  'search/val.jsonl': lines(mixed.slice(0, validation)),
});
