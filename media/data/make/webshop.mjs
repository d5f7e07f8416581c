// Generates the shop's catalogue of invented products in the format of WebShop's own files, so that one loader reads
// both catalogues: items_shuffle.json holds the products, items_ins_v2.json the attributes and instructions by asin.
// Run: node media/data/make/webshop.mjs
import { stream, writeData } from './random.mjs';

const { between, pick, shuffled } = stream(20_260_402);

const colours = [
  'black',
  'white',
  'navy blue',
  'forest green',
  'burgundy',
  'mustard',
  'light grey',
  'teal',
  'coral',
  'lavender',
];
const clothing = ['small', 'medium', 'large', 'x-large', 'xx-large'];
const shoes = ['6', '7', '8', '9', '10', '11'];

/**
 * Kinds of products: department, shelf, search words, noun of the title, attributes, prices in dollars, options by
 * name.
 */
const kinds = [
  [
    'fashion',
    'Men › Shirts › Polos',
    "men's polos",
    'Polo Shirt',
    ['machine wash', 'moisture wicking', 'slim fit', 'long sleeve', 'classic collar'],
    [14, 48],
    { color: colours, size: clothing },
  ],
  [
    'fashion',
    'Women › Dresses › Casual',
    "women's dresses",
    'Summer Dress',
    ['hand wash', 'knee length', 'v neck', 'short sleeve', 'elastic waist'],
    [18, 66],
    { color: colours, size: clothing },
  ],
  [
    'fashion',
    'Men › Shoes › Sneakers',
    "men's fashion sneakers",
    'Canvas Sneaker',
    ['rubber sole', 'lace up', 'memory foam', 'slip resistant'],
    [24, 88],
    { color: colours, size: shoes },
  ],
  [
    'fashion',
    'Women › Shoes › Sandals',
    "women's sandals",
    'Strap Sandal',
    ['open toe', 'ankle strap', 'synthetic sole', 'arch support'],
    [16, 72],
    { color: colours, size: shoes },
  ],
  [
    'fashion',
    'Women › Coats › Rain',
    "women's coats",
    'Rain Jacket',
    ['water resistant', 'button closure', 'faux fur', 'fleece lined'],
    [29, 120],
    { color: colours, size: clothing },
  ],
  [
    'fashion',
    'Men › Trousers › Casual',
    "men's pants",
    'Cargo Pants',
    ['straight leg', 'drawstring closure', 'quality polyester', 'elastic waistband'],
    [19, 61],
    { color: colours, size: clothing },
  ],
  [
    'garden',
    'Home › Bedding › Pillow Covers',
    'pillows & bedding',
    'Pillow Cover',
    ['double sided', 'hand painted', 'machine washable', 'super soft'],
    [6, 29],
    { color: colours, size: ['16 x 16 inch', '18 x 18 inch', '20 x 20 inch'] },
  ],
  [
    'garden',
    'Home › Lighting › Table Lamps',
    'table lamps',
    'Table Lamp',
    ['easy assemble', 'glass shade', 'bronze finish', 'dimmable'],
    [22, 95],
    { color: ['brass', 'matte black', 'white', 'walnut'] },
  ],
  [
    'garden',
    'Home › Furniture › Stools',
    'living room furniture',
    'Foot Stool',
    ['solid wood', 'assembly required', 'memory foam', 'easy clean'],
    [31, 140],
    { color: ['oak', 'walnut', 'grey', 'cream'] },
  ],
  [
    'garden',
    'Home › Kitchen › Storage',
    'food storage',
    'Storage Jar',
    ['bpa free', 'dishwasher safe', 'lead free', 'airtight lid'],
    [8, 42],
    { size: ['500 ml', '1 litre', '2 litre'] },
  ],
  [
    'garden',
    'Home › Bath › Towels',
    'bath towels',
    'Bath Towel',
    ['quick drying', 'super soft', 'machine washable', 'hypoallergenic'],
    [9, 45],
    { color: colours, size: ['hand', 'bath', 'sheet'] },
  ],
  [
    'garden',
    'Home › Windows › Curtains',
    'window treatments',
    'Blackout Curtain',
    ['noise reducing', 'machine washable', 'energy efficient', 'ready hang'],
    [17, 79],
    { color: colours, size: ['52 x 63 inch', '52 x 84 inch', '52 x 96 inch'] },
  ],
  [
    'electronics',
    'Electronics › Audio › Speakers',
    'bluetooth speakers',
    'Bluetooth Speaker',
    ['wireless bluetooth', 'water proof', 'hands free', 'stereo sound'],
    [19, 130],
    { color: ['black', 'red', 'blue', 'white'] },
  ],
  [
    'electronics',
    'Electronics › Accessories › Chargers',
    'phone chargers',
    'Charging Cable',
    ['fast charging', 'heavy duty', 'gold plated', 'braided nylon'],
    [5, 24],
    { size: ['1 m', '2 m', '3 m'], color: ['black', 'white', 'grey'] },
  ],
  [
    'electronics',
    'Electronics › Computers › Keyboards',
    'computer keyboards',
    'Compact Keyboard',
    ['plug play', 'long lasting', 'quiet keys', 'easy carry'],
    [21, 99],
    { color: ['black', 'white', 'pink'] },
  ],
  [
    'electronics',
    'Electronics › Camera › Tripods',
    'camera tripods',
    'Travel Tripod',
    ['carbon fiber', 'easy carry', 'quick release', 'light weight'],
    [25, 150],
    { size: ['120 cm', '150 cm', '170 cm'] },
  ],
  [
    'electronics',
    'Electronics › Television › Mounts',
    'tv mounts',
    'Wall Mount',
    ['easy install', 'heavy duty', 'full motion', 'steel frame'],
    [14, 70],
    { size: ['32 inch', '43 inch', '55 inch', '65 inch'] },
  ],
  [
    'beauty',
    'Beauty › Hair › Shampoo',
    'hair care',
    'Herbal Shampoo',
    ['sulfate free', 'cruelty free', 'dry scalp', 'paraben free'],
    [7, 33],
    { scent: ['mint', 'rosemary', 'lemon', 'unscented'], size: ['250 ml', '500 ml'] },
  ],
  [
    'beauty',
    'Beauty › Skin › Creams',
    'skin care',
    'Face Cream',
    ['fragrance free', 'dry skin', 'hyaluronic acid', 'cruelty free'],
    [9, 58],
    { size: ['30 ml', '50 ml', '100 ml'] },
  ],
  [
    'beauty',
    'Beauty › Oral › Brushes',
    'oral care',
    'Bamboo Toothbrush',
    ['eco friendly', 'sensitive teeth', 'soft bristles', 'bpa free'],
    [4, 19],
    { color: ['green', 'blue', 'natural'], size: ['2 pack', '4 pack', '8 pack'] },
  ],
  [
    'beauty',
    'Beauty › Tools › Mirrors',
    'beauty tools',
    'Makeup Mirror',
    ['led light', 'easy use', 'travel size', 'battery powered'],
    [12, 64],
    { color: ['rose gold', 'black', 'white'] },
  ],
  [
    'grocery',
    'Grocery › Snacks › Bars',
    'snack bars',
    'Granola Bar',
    ['gluten free', 'low sugar', 'plant based', 'high protein'],
    [6, 28],
    { 'flavor name': ['almond', 'cocoa', 'peanut butter', 'blueberry'], size: ['6 count', '12 count', '24 count'] },
  ],
  [
    'grocery',
    'Grocery › Drinks › Tea',
    'tea',
    'Herbal Tea',
    ['caffeine free', 'certified organic', 'sugar free', 'non gmo'],
    [5, 26],
    { 'flavor name': ['peppermint', 'chamomile', 'ginger', 'hibiscus'], size: ['20 bags', '40 bags', '80 bags'] },
  ],
  [
    'grocery',
    'Grocery › Baking › Mixes',
    'baking mixes',
    'Pancake Mix',
    ['gluten free', 'easy prepare', 'dairy free', 'whole grain'],
    [5, 22],
    { 'flavor name': ['buttermilk', 'banana', 'plain'], size: ['1 pound', '2 pound'] },
  ],
  [
    'grocery',
    'Grocery › Spices › Blends',
    'spices',
    'Seasoning Blend',
    ['low sodium', 'non gmo', 'msg free', 'kosher certified'],
    [4, 18],
    { size: ['4 ounce', '8 ounce', '16 ounce'] },
  ],
  [
    'fashion',
    'Luggage › Bags › Backpacks',
    'backpacks',
    'Day Backpack',
    ['water resistant', 'high capacity', 'padded straps', 'light weight'],
    [22, 84],
    { color: colours },
  ],
];
const brands = [
  'Aldermoor',
  'Brixley',
  'Corvane',
  'Dunmere',
  'Eastholt',
  'Fennimore',
  'Galloway & Pike',
  'Harrowby',
  'Inverlea',
  'Juniper Row',
  'Kestrel',
  'Lochside',
  'Marlowe',
  'Northwick',
  'Oakhanger',
  'Penrose',
  'Quayside',
  'Redfern',
  'Silverdale',
  'Thornbury',
];
const lines = [
  'Classic',
  'Heritage',
  'Essential',
  'Coastal',
  'Studio',
  'Everyday',
  'Meadow',
  'Nordic',
  'Urban',
  'Signature',
];
const uses = {
  fashion: ['everyday wear', 'office and travel', 'weekends', 'warm evenings'],
  garden: ['small flats', 'family homes', 'guest rooms', 'country kitchens'],
  electronics: ['home and office', 'travel', 'students', 'small rooms'],
  beauty: ['daily care', 'sensitive skin', 'the whole family', 'travel'],
  grocery: ['busy mornings', 'picnics', 'the pantry', 'sharing'],
};

const codes = new Set();
function asin() {
  const code = `B0${Array.from({ length: 8 }, () => pick('0123456789ABCDEFGHJKLMNPQRSTUVWXYZ')).join('')}`;
  if (codes.has(code)) return asin();
  codes.add(code);
  return code;
}

const products = [];
const instructions = {};
for (const [department, shelf, query, noun, attributes, [low, high], options] of kinds) {
  for (const brand of brands) {
    const own = shuffled(attributes).slice(0, between(2, 3));
    const line = pick(lines);
    const use = pick(uses[department]);
    const code = asin();
    const cents = pick([0, 49, 95, 99]);
    // A product has two or three values per option, to limit the number of its goals.
    const choices = Object.entries(options).map(([name, values]) => {
      const kept = shuffled(values).slice(0, pick([2, 2, 3]));
      return [name, values.filter(value => kept.includes(value)).map(value => ({ value, image: null }))];
    });
    products.push({
      asin: code,
      name: `${brand} ${line} ${noun} for ${use}, ${own[0]}`,
      full_description: `The ${line} ${noun.toLowerCase()} by ${brand} is made for ${use}. It comes in ${choices.map(([name, values]) => `${values.length} choices of ${name}`).join(' and ')}.`,
      small_description: own.map(
        attribute => `${attribute[0].toUpperCase()}${attribute.slice(1)}: as one expects of ${brand}.`,
      ),
      pricing: `$${(between(low, high) + cents / 100).toFixed(2)}`,
      category: department,
      product_category: shelf,
      query,
      customization_options: Object.fromEntries(choices),
      images: [],
    });
    instructions[code] = {
      attributes: own,
      instruction: `Find me ${own.join(', ')} ${query}`,
      instruction_attributes: own,
    };
  }
}

const rows = list => `[\n${list.map(row => JSON.stringify(row)).join(',\n')}\n]\n`;
const entries = object =>
  `{\n${Object.entries(object)
    .map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`)
    .join(',\n')}\n}\n`;
writeData({
  'webshop/items_shuffle.json': rows(shuffled(products)),
  'webshop/items_ins_v2.json': entries(instructions),
});
